#include "runner/measure/cuda/call_timing.h"

#include <algorithm>
#include <string>

namespace lockstep::runner {

Time since(HostClock::time_point begin) {
  return Time::nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(HostClock::now() - begin).count());
}

int calls_in_row(Bytes size, int arrays) {
  constexpr Bandwidth kUsual{200'000'000'000};
  const Time row = Time::milliseconds(2);  // what a row should take
  const Time one = Time::microseconds(10) + transfer_time(size, kUsual) * arrays;
  return static_cast<int>(std::clamp<std::int64_t>(row.ps() / one.ps(), kFewestCalls, kMostCalls));
}

CollectiveTable empty_table(const NcclCommunicator& communicator, std::string_view collective) {
  CollectiveTable table;
  table.collective = collective;
  table.backend = communicator.backend();
  table.workers = communicator.size();
  table.topology = kOneHost;
  return table;
}

CollectivePoint point_of(Bytes size, const std::vector<Time>& device, Time host) {
  const Quantiles spread = quantiles(device);
  return {.bytes = size, .p10 = spread.p10, .p50 = spread.p50, .p90 = spread.p90, .host = host};
}

}  // namespace lockstep::runner
