#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "runner/communicators/nccl.h"
#include "runner/measure/cuda/timing.h"
#include "runner/measure/statistics.h"
#include "sim/core/time.h"
#include "sim/core/units.h"
#include "sim/records/collective_table.h"

/// Timing one call of something by rows of such calls: on the device back to back, on the host.
namespace lockstep::runner {

using HostClock = std::chrono::steady_clock;

inline constexpr int kRows = 9;                              ///< samples of a point
inline constexpr int kFewestCalls = 4, kMostCalls = 40;      ///< in a row
inline const Time kIssueAllowance = Time::microseconds(15);  ///< the host gets ahead by this a call

Time since(HostClock::time_point begin);

/// How many calls fill a row. Ranks must agree on it, so it follows from what a fixed rate would
/// give for so many arrays of that size.
int calls_in_row(Bytes size, int arrays = 1);

/// Device and host time of one call of `work`, called `calls` times in a row on `stream`, which is
/// held until the host is ahead of it.
struct CallTime {
  Time device, host;
};
template <class Work>
CallTime time_row(c10::cuda::CUDAStream stream, int calls, Time allowance, const Work& work) {
  DeviceMark begin, end;
  hold(stream, allowance * calls);
  work();  // lines the ranks up
  begin.record(stream);
  const auto host_begin = HostClock::now();
  for (int i = 0; i < calls; ++i) work();
  const Time host = since(host_begin);
  end.record(stream);
  return {Time::picoseconds(end.since(begin).ps() / calls), Time::picoseconds(host.ps() / calls)};
}

/// Device time of one call, several times.
template <class Work>
std::vector<Time> time_rows(NcclCommunicator& communicator, int rows, int calls, Time allowance,
                            const Work& work) {
  std::vector<Time> device;
  for (int row = 0; row < rows; ++row) {
    device.push_back(time_row(communicator.stream(), calls, allowance, work).device);
  }
  communicator.synchronize(communicator.stream());
  return device;
}

/// Host time of one call as a strategy makes it, ordered behind the compute stream: the median of
/// several rows.
template <class Work>
Time time_host(NcclCommunicator& communicator, int rows, int calls, const Work& work) {
  std::vector<Time> times;
  for (int row = 0; row < rows; ++row) {
    communicator.barrier();
    const auto begin = HostClock::now();
    for (int i = 0; i < calls; ++i) work();
    const Time took = since(begin);
    communicator.synchronize(communicator.stream());
    times.push_back(Time::picoseconds(took.ps() / calls));
  }
  return median_time(times);
}

/// A table of this communicator without points.
CollectiveTable empty_table(const NcclCommunicator& communicator, std::string_view collective);
CollectivePoint point_of(Bytes size, const std::vector<Time>& device, Time host);

}  // namespace lockstep::runner
