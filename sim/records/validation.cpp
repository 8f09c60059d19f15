#include "sim/records/validation.h"

#include "sim/core/files.h"
#include "sim/records/describe.h"
#include "sim/records/json_text.h"

namespace lockstep {

template <class Io>
void describe(Io& io, Described<Io, ValidationPoint>& point) {
  io.field("run", point.run);
  io.field("model", point.model);
  io.field("strategy", point.strategy);
  io.field("batch_per_worker", point.batch_per_worker);
  io.field("workers", point.workers, kAtLeastOne);
  io.field("graph", point.graph);
  io.name("sync", point.sync, kSyncNames);
  newer(io, "compute", [&] { io.name("compute", point.compute, kComputeNames); });
  newer(io, "slow_motion", [&] { io.field("slow_motion", point.slow_motion, kAtLeastOne); });
  newer(io, "hosts", [&] { io.field("hosts", point.hosts, kAtLeastOne); });
  newer(io, "link_bytes_per_second",
        [&] { io.field("link_bytes_per_second", point.link.bytes_per_second, kLinkRates); });
  if (Io::kReading || point.bytes > Bytes{}) {
    newer(io, "bytes", [&] { io.field("bytes", point.bytes); });
  }
  if constexpr (Io::kReading) {
    if (point.bytes == Bytes{} && point.batch_per_worker < 1) {
      io.at()
          .child("batch_per_worker")
          .fail("a step has a sample at least", "only collectives have none");
    }
  }
  io.field("predicted_ns", point.predicted);
  io.field("measured_ns", point.measured);
  io.field("measured_normalised_ns", point.measured_normalised);
  io.field("repeat_spread", point.repeat_spread);
  io.field("error", point.error, kSigned);
  io.field("host_bound", point.host_bound);
  io.field("stable", point.stable);
  io.name("basis", point.basis, kBasisNames);
  if (Io::kReading || point.in_band)
    newer(io, "in_band", [&] { io.field("in_band", point.in_band); });
}

template <class Io>
void describe(Io& io, Described<Io, ValidationGroup>& group) {
  io.field("name", group.name);
  io.field("mean_error", group.mean_error);
  io.field("worst_error", group.worst_error);
  const auto wanted = [&](std::string_view key, auto& bound) {
    if (Io::kReading || bound) newer(io, key, [&] { io.field(key, bound); });
  };
  wanted("wanted_mean", group.wanted_mean);
  wanted("wanted_worst", group.wanted_worst);
  wanted("allowed_mean", group.allowed_mean);
  if constexpr (Io::kReading) {
    // When only such groups had bounds, nothing else said so.
    group.own_question = group.wanted_mean || group.wanted_worst;
  }
  newer(io, "own_question", [&] { io.field("own_question", group.own_question); });
  if constexpr (Io::kReading) {
    bool ignored = false;  // said for those who read the file without us
    newer(io, "held", [&] { io.field("held", ignored); });
  } else if (group.wanted_mean || group.wanted_worst) {
    io.field("held", held(group));
  }
  io.field("points", group.points);
}

bool held(const ValidationGroup& group) {
  const std::optional<double>& mean = group.allowed_mean ? group.allowed_mean : group.wanted_mean;
  return (!mean || group.mean_error <= *mean) &&
         (!group.wanted_worst || group.worst_error <= *group.wanted_worst);
}

Validation read_validation(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  check_header(in, "validation");
  Validation validation;
  in.field("calibration", validation.calibration);
  in.field("groups", validation.groups);
  in.finish();
  return validation;
}

void write_validation(const Validation& validation, const std::string& file) {
  JsonWriter out = begin_file("validation");
  out.field("calibration", validation.calibration);
  out.field("groups", validation.groups);
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
