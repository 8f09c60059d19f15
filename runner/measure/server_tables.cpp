#include "runner/measure/server_tables.h"

#include <cmath>

#include "runner/measure/statistics.h"
#include "runner/strategies/server.h"
#include "sim/core/units.h"

namespace lockstep::runner {

namespace {

constexpr Bytes kMost{64 * kMiB.count};

}  // namespace

CollectiveTable time_message_table(PointToPoint& group, int workers,
                                   const std::function<void()>& beat) {
  constexpr std::size_t kDropped = 2;
  constexpr int kRounds = 40, kRoundsOfLarge = 9;
  CollectiveTable table{.collective = "send_recv",
                        .backend = "gloo",
                        .algorithm = "",
                        .workers = 2,
                        .topology = kOneHost,
                        .points = {},
                        .environment = {}};
  for (Bytes bytes{256}; bytes <= kMost; bytes.count *= 4) {
    const int rounds = bytes < kMiB ? kRounds : kRoundsOfLarge;
    std::vector<double> times;
    for (const Moment time : time_messages(group, workers, bytes, rounds)) {
      times.push_back(static_cast<double>(time));
    }
    times.erase(times.begin(), times.begin() + kDropped);
    const auto at = [&times](double part) {
      return Time::nanoseconds(std::llround(quantile(times, part)));
    };
    table.points.push_back(
        {.bytes = bytes, .p10 = at(0.1), .p50 = at(0.5), .p90 = at(0.9), .host = {}});
    beat();
  }
  return table;
}

std::vector<CopyTable> time_server_tables(PointToPoint& group, int workers,
                                          const std::function<void()>& beat) {
  constexpr int kRounds = 9;
  std::vector<CopyTable> tables{{.what = "server_add", .points = {}},
                                {.what = "server_apply", .points = {}},
                                {.what = "server_copy", .points = {}}};
  for (Bytes bytes{16 * 1024}; bytes <= kMost; bytes.count *= 4) {
    const ServerWork took = time_server_work(group, workers, bytes, kRounds);
    const Moment times[] = {took.add, took.apply, took.copy};
    for (std::size_t i = 0; i < tables.size(); ++i) {
      tables[i].points.push_back(
          {.bytes = bytes, .tensors = 1, .device = Time::nanoseconds(times[i]), .host = {}});
    }
    beat();
  }
  return tables;
}

}  // namespace lockstep::runner
