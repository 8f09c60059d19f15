#include "sim/records/calibration.h"

#include <algorithm>

#include "sim/core/files.h"
#include "sim/records/describe.h"
#include "sim/records/json_text.h"
#include "sim/records/profile_fields.h"

namespace lockstep {

static constexpr Range kSlowdown{1, 1e6};

template <class Io>
void describe(Io& io, Described<Io, InterferenceFit::ByLayerKind>& kind) {
  io.field("layer_kind", kind.layer_kind);
  io.field("waiting", kind.waiting, kSlowdown);
  io.field("transferring", kind.transferring, kSlowdown);
  newer(io, "collective_beside",
        [&] { io.field("collective_beside", kind.collective_beside, kSlowdown); });
  newer(io, "wait_beside_ns", [&] { io.field("wait_beside_ns", kind.wait_beside); });
}

template <class Io>
void describe(Io& io, Described<Io, InterferenceFit>& fit) {
  io.field("waiting", fit.waiting, kSlowdown);
  io.field("transferring", fit.transferring, kSlowdown);
  io.field("collective_beside_compute", fit.collective_beside_compute, kSlowdown);
  newer(io, "wait_beside_compute_ns",
        [&] { io.field("wait_beside_compute_ns", fit.wait_beside_compute); });
  io.field("by_layer_kind", fit.by_layer_kind);
}

template <class Io>
void describe(Io& io, Described<Io, CoreSlowdown>& cores) {
  io.field("active", cores.active, kAtLeastOne);
  io.field("threads", cores.threads, kAtLeastOne);
  io.field("slowdown", cores.slowdown, Range{1e-6, 1e6});
}

template <class Io>
void describe(Io& io, Described<Io, Noise>& noise) {
  constexpr Range kRelative{0, 10};  // a larger deviation of a logarithm is a mistake
  io.field("process", noise.process, kRelative);
  io.field("step", noise.step, kRelative);
  io.field("task", noise.task, kRelative);
}

template <class Io>
void describe(Io& io, Described<Io, Fit>& fit) {
  io.field("what", fit.what);
  io.field("residual", fit.residual, kSigned);
  io.field("points", fit.points);
}

template <class Io, class Record>
void describe_calibration(Io& io, Record& calibration, Structures& structures) {
  io.field("id", calibration.id);
  describe_origin(io, calibration.origin);
  io.field("reference_ns", calibration.reference);
  newer(io, "drift_exponent",
        [&] { io.field("drift_exponent", calibration.drift_exponent, Range{0, 1}); });
  io.list("profiles", calibration.profiles,
          [&](auto& inner, auto& profile) { describe_profile(inner, profile, structures); });
  io.field("collectives", calibration.collectives);
  io.field("copies", calibration.copies);
  io.field("interference", calibration.interference);
  io.field("cores", calibration.cores);
  io.field("noise", calibration.noise);
  io.field("launch_queue", calibration.launch_queue);
  io.field("fits", calibration.fits);
}

const CopyTable* copies_of(const Calibration& calibration, std::string_view what) {
  const auto found = std::ranges::find(calibration.copies, what, &CopyTable::what);
  return found == calibration.copies.end() ? nullptr : &*found;
}

const CopyTable* first_copies_of(const Calibration& calibration,
                                 std::initializer_list<std::string_view> names) {
  for (const std::string_view what : names) {
    const CopyTable* table = copies_of(calibration, what);
    if (table != nullptr && !table->points.empty()) return table;
  }
  return nullptr;
}

Calibration read_calibration(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  check_header(in, "calibration");
  Structures structures;
  read_structures(in, structures);
  Calibration calibration;
  describe_calibration(in, calibration, structures);
  in.finish();
  return calibration;
}

void write_calibration(const Calibration& calibration, const std::string& file) {
  JsonWriter out = begin_file("calibration");
  Structures structures;
  describe_calibration(out, calibration, structures);
  write_structures(out, structures);
  write_file(file, to_text(out.take()));
}

}  // namespace lockstep
