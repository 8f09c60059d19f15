#include "sim/records/measurement.h"

#include "sim/core/files.h"
#include "sim/records/describe.h"
#include "sim/records/json_text.h"
#include "sim/records/profile_fields.h"

namespace lockstep {

template <class Io>
void describe(Io& io, Described<Io, CollectiveSample>& sample) {
  io.field("process", sample.process);
  io.field("speed_index", sample.speed_index);
  io.field("table", sample.table);
}

template <class Io>
void describe(Io& io, Described<Io, InterferenceSample>& sample) {
  io.field("layer_kind", sample.layer_kind);
  io.field("beside", sample.beside);
  io.field("workers", sample.workers);
  io.field("alone_ns", sample.alone);
  io.field("together_ns", sample.together);
  if (Io::kReading || sample.bytes > Bytes{}) {
    newer(io, "bytes", [&] { io.field("bytes", sample.bytes); });
  }
}

template <class Io>
void describe(Io& io, Described<Io, CoreSample>& sample) {
  io.field("active", sample.active, kAtLeastOne);
  io.field("threads", sample.threads, kAtLeastOne);
  io.field("speed_index", sample.speed_index);
  io.field("time_ns", sample.time);
}

template <class Io, class Sample>
void describe_profile_sample(Io& io, Sample& sample, Structures& structures) {
  io.field("process", sample.process);
  io.field("rank", sample.rank);
  io.field("speed_index", sample.speed_index);
  io.group("profile", [&](auto& inner) { describe_profile(inner, sample.profile, structures); });
  io.field("steps_ns", sample.steps);
  if (Io::kReading || sample.ddp_host > Time{}) {
    newer(io, "ddp_host_ns", [&] { io.field("ddp_host_ns", sample.ddp_host); });
  }
}

template <class Io, class Record>
void describe_measurement(Io& io, Record& measurement, Structures& structures) {
  io.field("id", measurement.id);
  describe_origin(io, measurement.origin);
  io.field("reference_ns", measurement.reference);
  io.field("launch_queue", measurement.launch_queue);
  io.list("profiles", measurement.profiles,
          [&](auto& inner, auto& sample) { describe_profile_sample(inner, sample, structures); });
  io.field("collectives", measurement.collectives);
  io.field("copies", measurement.copies);
  io.field("interference", measurement.interference);
  io.field("cores", measurement.cores);
}

Measurement read_measurement(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  check_header(in, "measurement");
  Structures structures;
  read_structures(in, structures);
  Measurement measurement;
  describe_measurement(in, measurement, structures);
  in.finish();
  return measurement;
}

void write_measurement(const Measurement& measurement, const std::string& file) {
  JsonWriter out = begin_file("measurement");
  Structures structures;
  describe_measurement(out, measurement, structures);
  write_structures(out, structures);
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
