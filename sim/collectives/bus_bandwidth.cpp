#include "sim/collectives/bus_bandwidth.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/core/error.h"

namespace lockstep {
namespace {

/// One way, of one NVLink of a card whose name holds the word.
constexpr std::array<std::pair<std::string_view, std::int64_t>, 9> kNvlinkRates{{
    {"P100", 20'000'000'000},
    {"V100", 25'000'000'000},
    {"A100", 25'000'000'000},
    {"A800", 25'000'000'000},
    {"H100", 25'000'000'000},
    {"H200", 25'000'000'000},
    {"H800", 25'000'000'000},
    {"B200", 50'000'000'000},
    {"B300", 50'000'000'000},
}};

/// Of "NVLink, 18 links a pair".
int links_of_a_pair(std::string_view links) {
  constexpr std::string_view kLead = "NVLink, ";
  if (!links.starts_with(kLead)) return 0;
  links.remove_prefix(kLead.size());
  int count = 0;
  std::from_chars(links.data(), links.data() + links.size(), count);
  return count;
}

}  // namespace

double bus_factor(std::string_view collective, int workers) {
  LOCKSTEP_ASSERT(workers >= 2, "one worker has nobody to exchange with");
  const double n = workers;
  if (collective == "all_reduce") return 2 * (n - 1) / n;
  if (collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all") {
    return (n - 1) / n;
  }
  return collective == "gather" || collective == "scatter" ? n - 1 : 1;
}

Bandwidth bus_bandwidth(const CollectiveTable& table, const CollectivePoint& point) {
  if (table.workers < 2 || point.bytes <= Bytes{} || point.p50 <= Time{}) return {};
  const double rate = static_cast<double>(point.bytes.count) / point.p50.seconds() *
                      bus_factor(table.collective, table.workers);
  return {std::llround(rate)};
}

std::optional<Bandwidth> link_bandwidth(const Machine& machine) {
  const int links = links_of_a_pair(machine.links);
  if (links <= 0 || machine.gpus.empty()) return std::nullopt;
  for (const auto& [card, rate] : kNvlinkRates) {
    if (machine.gpus.front().name.find(card) != std::string::npos) return Bandwidth{links * rate};
  }
  return std::nullopt;
}

std::string describe_bus(Bandwidth bus, const std::optional<Bandwidth>& link) {
  if (!link || link->bytes_per_second <= 0) return to_string(bus);
  const double share =
      static_cast<double>(bus.bytes_per_second) / static_cast<double>(link->bytes_per_second);
  return fmt::format("{}, {:.0f} % of the link's", to_string(bus), share * 100);
}

}  // namespace lockstep
