#pragma once

#include "sim/records/collective_table.h"
#include "sim/records/json_fields.h"
#include "sim/records/origin.h"
#include "sim/records/profile.h"
#include "sim/records/run.h"

/// The parts that several records share. Keys are as in the page on formats: times end in _ns and
/// are whole nanoseconds, bytes end in _bytes.
namespace lockstep {

inline constexpr std::string_view kBasisNames[] = {"measured", "interpolated", "extrapolated"};
inline constexpr std::string_view kSyncNames[] = {"step", "none"};
inline constexpr std::string_view kCompressionNames[] = {"none", "bf16"};
inline constexpr std::string_view kComputeNames[] = {"real", "replay"};
inline constexpr std::string_view kStepPartNames[] = {"step", "input", "forward", "backward"};

/// A field that older records lack; its default stands for what they were.
template <class Io, class F>
void newer(Io& io, std::string_view key, F field) {
  if constexpr (Io::kReading) {
    if (!io.has(key)) return;
  }
  field();
}

/// Bytes a second.
inline constexpr Range kLinkRates{0, 8e12};

template <class Io>
void describe(Io& io, Described<Io, GpuInfo>& gpu) {
  io.field("name", gpu.name);
  io.field("uuid", gpu.uuid);
  io.field("sm_clock_mhz", gpu.sm_clock_mhz);
  io.field("power_w", gpu.power_w);
  io.field("throttle", gpu.throttle);
}

template <class Io>
void describe(Io& io, Described<Io, Machine>& machine) {
  io.field("host", machine.host);
  io.field("cpu", machine.cpu);
  io.field("cores", machine.cores);
  io.field("gpus", machine.gpus);
  io.field("links", machine.links);
}

template <class Io>
void describe(Io& io, Described<Io, Software>& software) {
  io.field("lockstep", software.lockstep);
  io.field("torch", software.torch);
  io.field("cuda", software.cuda);
  io.field("nccl", software.nccl);
  io.field("gloo", software.gloo);
  io.field("driver", software.driver);
}

/// The fields of an Origin stand at the top level of a record.
template <class Io>
void describe_origin(Io& io, Described<Io, Origin>& origin) {
  io.field("machine", origin.machine);
  io.field("software", origin.software);
  io.field("environment", origin.environment);
  io.field("command", origin.command);
  io.field("date", origin.date);
}

template <class Io>
void describe(Io& io, Described<Io, SpeedIndex>& index) {
  io.field("before_ns", index.before);
  io.field("after_ns", index.after);
}

template <class Io>
void describe(Io& io, Described<Io, Quantiles>& quantiles) {
  io.field("mean", quantiles.mean);
  io.field("p10", quantiles.p10);
  io.field("p50", quantiles.p50);
  io.field("p90", quantiles.p90);
}

template <class Io>
void describe(Io& io, Described<Io, BucketTimes>& bucket) {
  io.field("bytes", bucket.bytes);
  io.field("ready_ns", bucket.ready);
  io.field("launch_ns", bucket.launch);
  io.field("done_ns", bucket.done);
}

template <class Io>
void describe(Io& io, Described<Io, CollectivePoint>& point) {
  io.field("bytes", point.bytes);
  io.group("device_ns", [&](auto& inner) {
    inner.field("p10", point.p10);
    inner.field("p50", point.p50);
    inner.field("p90", point.p90);
  });
  io.field("host_ns", point.host);
}

/// Reading: each size once, the smallest first.
template <class Io>
void check_ascending(const Io& io, std::string_view key,
                     const std::vector<CollectivePoint>& points) {
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].bytes > points[i - 1].bytes) continue;
    io.at().child(key).child(i).fail("bytes do not ascend", "sort the points by bytes");
  }
}

template <class Io>
void describe(Io& io, Described<Io, CollectiveTable>& table) {
  io.field("collective", table.collective);
  io.field("backend", table.backend);
  io.field("algorithm", table.algorithm);
  io.field("workers", table.workers, kAtLeastOne);
  io.field("topology", table.topology);
  io.field("points", table.points);
  io.field("environment", table.environment);
  if (Io::kReading || !table.held_out.empty()) {
    newer(io, "held_out", [&] { io.field("held_out", table.held_out); });
  }
  if (Io::kReading || table.call_between > Time{}) {
    newer(io, "call_between_ns", [&] { io.field("call_between_ns", table.call_between); });
  }
  if constexpr (Io::kReading) {
    if (table.points.empty()) io.at().child("points").fail("a table without points");
    check_ascending(io, "points", table.points);
    check_ascending(io, "held_out", table.held_out);
  }
}

template <class Io>
void describe(Io& io, Described<Io, CopyPoint>& point) {
  io.field("bytes", point.bytes);
  io.field("tensors", point.tensors);
  io.field("device_ns", point.device);
  io.field("host_ns", point.host);
}

template <class Io>
void describe(Io& io, Described<Io, CopyTable>& table) {
  io.field("what", table.what);
  io.field("points", table.points);
}

template <class Io>
void describe(Io& io, Described<Io, Cost>& cost) {
  io.field("host_ns", cost.host);
  io.field("device_ns", cost.device);
  io.field("launches", cost.launches);
}

template <class Io>
void describe(Io& io, Described<Io, StalenessCount>& count) {
  io.field("staleness", count.staleness);
  io.field("updates", count.updates);
}

template <class Io>
void describe(Io& io, Described<Io, ProcessTraffic>& traffic) {
  io.field("process", traffic.process);
  io.field("out_bytes", traffic.out);
  io.field("in_bytes", traffic.in);
  io.field("out_busy", traffic.out_busy);
  io.field("in_busy", traffic.in_busy);
}

template <class Io>
void describe(Io& io, Described<Io, ServerStatistics>& servers) {
  io.field("throughput", servers.throughput);
  io.field("staleness", servers.staleness);
  io.field("traffic", servers.traffic);
}

}  // namespace lockstep
