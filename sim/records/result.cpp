#include "sim/records/result.h"

#include "sim/core/files.h"
#include "sim/records/describe.h"
#include "sim/records/json_text.h"

namespace lockstep {

static constexpr Range kEpoch{0, 9e15};  // what the clock holds, 106 days

template <class Io>
void describe(Io& io, Described<Io, Uncertainty>& uncertainty) {
  io.field("repeat", uncertainty.repeat);
  io.field("fit", uncertainty.fit);
  io.field("drawn", uncertainty.drawn);
}

template <class Io>
void describe(Io& io, Described<Io, Breakdown>& breakdown) {
  io.field("compute_ns", breakdown.compute);
  io.field("exposed_ns", breakdown.exposed);
  io.field("waiting_ns", breakdown.waiting);
  io.field("host_ns", breakdown.host);
  io.field("input_ns", breakdown.input);
  io.field("idle_ns", breakdown.idle);
  io.field("hidden_ns", breakdown.hidden);
}

template <class Io>
void describe(Io& io, Described<Io, ResultPoint>& point) {
  io.field("workers", point.workers, kAtLeastOne);
  io.field("batch_per_worker", point.batch_per_worker, kAtLeastOne);
  io.field("strategy", point.strategy);
  io.field("step_ns", point.step);
  io.field("uncertainty", point.uncertainty);
  io.name("basis", point.basis, kBasisNames);
  io.field("throughput", point.throughput);
  io.field("speedup", point.speedup);
  io.field("efficiency", point.efficiency);
  io.field("breakdown", point.breakdown);
  io.field("host_busy", point.host_busy);
  io.field("host_bound", point.host_bound);
  io.field("buckets", point.buckets);
  newer(io, "epoch_ns", [&] {
    io.group("epoch_ns", [&](auto& epoch) {
      epoch.field("with_input", point.epoch_with_input, kEpoch);
      epoch.field("without_input", point.epoch_without_input, kEpoch);
    });
  });
  newer(io, "peak_bytes", [&] { io.field("peak_bytes", point.peak); });
  if (Io::kReading || point.servers) {
    newer(io, "servers", [&] { io.field("servers", point.servers); });
  }
}

template <class Io, class Record>
void describe_prediction(Io& io, Record& prediction) {
  io.field("scenario", prediction.scenario);
  io.field("model", prediction.model);
  io.field("calibration", prediction.calibration);
  io.field("weak", prediction.weak);
  io.field("precision", prediction.precision);
  io.name("sync", prediction.sync, kSyncNames);
  io.field("graph", prediction.graph);
  io.field("points", prediction.points);
}

Breakdown in_whole_nanoseconds(const Breakdown& exact) {
  Breakdown rounded;
  Time sum, written;
  const auto part = [&](Time Breakdown::* member) {
    sum += exact.*member;
    rounded.*member = Time::nanoseconds(sum.ns()) - written;
    written = Time::nanoseconds(sum.ns());
  };
  for (const auto member : {&Breakdown::compute, &Breakdown::exposed, &Breakdown::waiting,
                            &Breakdown::host, &Breakdown::input, &Breakdown::idle}) {
    part(member);
  }
  rounded.hidden = Time::nanoseconds(exact.hidden.ns());
  return rounded;
}

Prediction read_result(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  check_header(in, "result");
  Prediction prediction;
  describe_prediction(in, prediction);
  in.finish();
  return prediction;
}

void write_result(const Prediction& prediction, const std::string& file) {
  Prediction rounded = prediction;
  for (ResultPoint& point : rounded.points) point.breakdown = in_whole_nanoseconds(point.breakdown);
  JsonWriter out = begin_file("result");
  describe_prediction(out, std::as_const(rounded));
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
