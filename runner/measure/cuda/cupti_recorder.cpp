#include "runner/measure/cuda/cupti_recorder.h"

#include <cupti.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "runner/measure/clock.h"
#include "runner/measure/cuda/check.h"

namespace lockstep::runner {
namespace {

void check_cupti(CUptiResult status, std::string_view doing) {
  if (status != CUPTI_SUCCESS) {
    const char* text = nullptr;
    cuptiGetResultString(status, &text);
    throw RunError(fmt::format("{}: CUPTI: {}", doing, text ? text : "unknown error"));
  }
}

/// The call that launched work.
struct Call {
  std::int64_t start = 0;
  std::uint32_t thread = 0;
};

/// What CUPTI's callbacks, which carry no user pointer, collect.
struct Collected {
  std::mutex mutex;
  std::vector<DeviceWork> work;
  std::unordered_map<std::uint32_t, Call> calls;  ///< by correlation
  std::size_t dropped = 0;
};

Collected& collected() {
  static Collected instance;
  return instance;
}

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kBufferAlignment = 8;

constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
                               CUPTI_ACTIVITY_KIND_DRIVER};

std::uint64_t clock_now() {
  return static_cast<std::uint64_t>(host_now());
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *max_records = 0;
}

template <class Activity>
void add_work(Collected& into, const Activity& activity, std::string name) {
  if (activity.start == 0 || activity.end < activity.start) return;  // CUPTI could not time it
  DeviceWork work;
  work.name = std::move(name);
  work.start = static_cast<std::int64_t>(activity.start);
  work.end = static_cast<std::int64_t>(activity.end);
  work.stream = activity.streamId;
  work.correlation = activity.correlationId;
  into.work.push_back(std::move(work));
}

/// Runtime calls contain driver calls; the outermost, hence the earliest, is the launch.
void add_call(Collected& into, const CUpti_ActivityAPI& call) {
  const Call seen{static_cast<std::int64_t>(call.start), call.threadId};
  auto [place, added] = into.calls.try_emplace(call.correlationId, seen);
  if (!added && seen.start < place->second.start) place->second = seen;
}

void add_record(Collected& into, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      add_work(into, *kernel, kernel->name ? kernel->name : "");
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      add_work(into, *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record), "memcpy");
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      add_work(into, *reinterpret_cast<const CUpti_ActivityMemset4*>(record), "memset");
      break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      add_call(into, *reinterpret_cast<const CUpti_ActivityAPI*>(record));
      break;
    default:
      break;
  }
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t /*size*/, std::size_t valid) {
  Collected& into = collected();
  const std::lock_guard lock(into.mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    add_record(into, record);
  }
  std::size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) {
    into.dropped += dropped;
  }
  std::free(buffer);
}

}  // namespace

void CuptiRecorder::start() {
  static const bool kRegistered = [] {
    check_cupti(cuptiActivityRegisterTimestampCallback(clock_now), "choosing the profiler's clock");
    check_cupti(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "starting the profiler");
    return true;
  }();
  static_cast<void>(kRegistered);
  check(cudaDeviceSynchronize(), "waiting for the device");
  {
    const std::lock_guard lock(collected().mutex);
    collected().work.clear();
    collected().calls.clear();
    collected().dropped = 0;
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    check_cupti(cuptiActivityEnable(kind), "starting the profiler");
  }
}

std::vector<DeviceWork> CuptiRecorder::stop() {
  check(cudaDeviceSynchronize(), "waiting for the device");
  for (const CUpti_ActivityKind kind : kKinds) {
    check_cupti(cuptiActivityDisable(kind), "stopping the profiler");
  }
  check_cupti(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
              "reading the profiler's records");
  Collected& from = collected();
  const std::lock_guard lock(from.mutex);
  if (from.dropped > 0) {
    throw RunError(fmt::format("the profiler dropped {} records", from.dropped));
  }
  for (DeviceWork& work : from.work) {
    if (const auto call = from.calls.find(work.correlation); call != from.calls.end()) {
      work.issued = call->second.start;
      work.thread = call->second.thread;
    }
  }
  std::sort(from.work.begin(), from.work.end(),
            [](const DeviceWork& a, const DeviceWork& b) { return a.start < b.start; });
  return std::move(from.work);
}

}  // namespace lockstep::runner
