#include "runner/measure/server_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "runner/measure/gather.h"

namespace lockstep::runner {

namespace {

/// What is further behind counts as so far.
constexpr std::int64_t kMostStaleness = 4095;

/// One worker's part, as it travels.
struct WorkerSaw {
  std::int64_t nanoseconds = 0, steps = 0;
  std::vector<std::int64_t> out, in;  ///< bytes, by server
  std::vector<std::int64_t> updates;  ///< by staleness
};

std::int64_t staleness_of(const ServerExchange& exchange) {
  return std::clamp<std::int64_t>(exchange.applied_at - exchange.computed_on, 0, kMostStaleness);
}

std::vector<std::int64_t> as_row(const SeenOfServers& mine, std::int64_t most) {
  const auto servers = static_cast<std::size_t>(mine.servers);
  std::vector<std::int64_t> row(2 + 2 * servers + static_cast<std::size_t>(most) + 1, 0);
  for (const Moment step : mine.steps) row[0] += step;
  row[1] = std::ssize(mine.steps);
  for (const ServerExchange& one : mine.exchanges) {
    const auto server = static_cast<std::size_t>(one.server);
    row[2 + server] += one.out.count;
    row[2 + servers + server] += one.in.count;
    ++row[2 + 2 * servers + static_cast<std::size_t>(staleness_of(one))];
  }
  return row;
}

WorkerSaw from_row(const std::vector<std::int64_t>& row, std::size_t servers) {
  const auto at = [&](std::size_t i) { return row.begin() + static_cast<std::ptrdiff_t>(i); };
  return {.nanoseconds = row[0],
          .steps = std::max<std::int64_t>(1, row[1]),
          .out = {at(2), at(2 + servers)},
          .in = {at(2 + servers), at(2 + 2 * servers)},
          .updates = {at(2 + 2 * servers), row.end()}};
}

ProcessTraffic traffic_of(const std::string& process, double out, double in, double seconds,
                          Bandwidth link) {
  const double most = static_cast<double>(link.bytes_per_second) * seconds;
  return {.process = process,
          .out = {std::llround(out)},
          .in = {std::llround(in)},
          .out_busy = most > 0 ? out / most : 0,
          .in_busy = most > 0 ? in / most : 0};
}

}  // namespace

ServerStatistics server_statistics(const SeenOfServers& mine, Communicator* communicator,
                                   c10::Device device) {
  const auto count = static_cast<std::size_t>(mine.servers);
  std::int64_t most = 0;
  for (const ServerExchange& one : mine.exchanges) most = std::max(most, staleness_of(one));
  const auto all_of = [&](const std::vector<std::int64_t>& row) {
    return gather(communicator, row, device);
  };
  for (const auto& row : all_of({most})) most = std::max(most, row.front());
  std::vector<WorkerSaw> seen;
  for (const auto& row : all_of(as_row(mine, most))) {
    seen.push_back(from_row(row, count));
  }
  ServerStatistics result;
  double seconds = 0;  // of a step, in the mean
  std::vector<double> to_server(count, 0), from_server(count, 0);
  std::vector<std::int64_t> updates(static_cast<std::size_t>(most) + 1, 0);
  for (const WorkerSaw& one : seen) {
    const double step =
        static_cast<double>(one.nanoseconds) * 1e-9 / static_cast<double>(one.steps);
    seconds += step / static_cast<double>(seen.size());
    result.throughput += step > 0 ? mine.batch / step : 0;
    for (std::size_t i = 0; i < updates.size(); ++i) updates[i] += one.updates[i];
    for (std::size_t server = 0; server < count; ++server) {
      to_server[server] += static_cast<double>(one.out[server]) / static_cast<double>(one.steps);
      from_server[server] += static_cast<double>(one.in[server]) / static_cast<double>(one.steps);
    }
  }
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    double out = 0, in = 0;
    for (const std::int64_t bytes : seen[rank].out) out += static_cast<double>(bytes);
    for (const std::int64_t bytes : seen[rank].in) in += static_cast<double>(bytes);
    const auto steps = static_cast<double>(seen[rank].steps);
    result.traffic.push_back(
        traffic_of(fmt::format("worker {}", rank), out / steps, in / steps, seconds, mine.link));
  }
  for (std::size_t server = 0; server < count; ++server) {
    result.traffic.push_back(traffic_of(fmt::format("server {}", server), from_server[server],
                                        to_server[server], seconds, mine.link));
  }
  for (std::int64_t i = 0; i <= most; ++i) {
    const std::int64_t those = updates[static_cast<std::size_t>(i)];
    if (those > 0) result.staleness.push_back({.staleness = i, .updates = those});
  }
  return result;
}

}  // namespace lockstep::runner
