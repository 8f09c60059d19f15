#pragma once

#include <vector>

#include "sim/records/describe.h"
#include "sim/records/json_table.h"
#include "sim/records/profile.h"

namespace lockstep {

/// Layers without their times: names, kinds, parameters and orders. Profiles of one model share
/// them, so a file holds each list once, under "structures", and a profile names it by its index.
struct Structures {
  std::vector<std::vector<Layer>> lists;
  std::vector<std::string> models;
};

/// Collects the structures of `profile` when writing; returns the index.
int structure_of(const Profile& profile, Structures& structures);

void read_structures(JsonReader& in, Structures& structures);
void write_structures(JsonWriter& out, const Structures& structures);

/// Checks what reaches over fields: orders are permutations and all times together are below an
/// hour.
void check_profile(const Profile& profile, const JsonPath& at);

template <class Io>
void describe_layer_cost(Io& io, Described<Io, Layer>& layer) {
  io.field("forward_host_ns", layer.forward.host);
  io.field("forward_device_ns", layer.forward.device);
  io.field("forward_launches", layer.forward.launches);
  io.field("backward_host_ns", layer.backward.host);
  io.field("backward_device_ns", layer.backward.device);
  io.field("backward_launches", layer.backward.launches);
  io.field("output_bytes", layer.output);
}
inline constexpr auto kLayerCost = [](auto& io, auto& layer) { describe_layer_cost(io, layer); };

void read_layers(JsonReader& in, Profile& profile, const Structures& structures);
void write_layers(JsonWriter& out, const Profile& profile, Structures& structures);

template <class Io, class StructuresOrConst>
void describe_profile(Io& io, Described<Io, Profile>& profile, StructuresOrConst& structures) {
  io.field("model", profile.model);
  io.field("batch", profile.batch, kAtLeastOne);
  io.field("precision", profile.precision);
  io.field("device", profile.device);
  io.field("graph", profile.graph);
  io.field("beside", profile.beside, kAtLeastOne);
  if constexpr (Io::kReading) {
    read_layers(io, profile, structures);
  } else {
    write_layers(io, profile, structures);
  }
  io.field("optimizer", profile.optimizer);
  io.field("step_overhead", profile.step_overhead);
  io.field("gradient_hook", profile.gradient_hook);
  newer(io, "host_of_rank", [&] { io.field("host_of_rank", profile.host_of_rank); });
  io.group("input", [&](auto& inner) {
    inner.field("load_ns", profile.input_load);
    inner.field("copy_ns", profile.input_copy);
    inner.field("bytes", profile.input_bytes);
  });
  io.field("peak_bytes", profile.peak);
  io.field("step_ns", profile.step);
  io.group("spread", [&](auto& inner) {
    inner.field("between_processes", profile.spread_between_processes);
    inner.field("between_steps", profile.spread_between_steps);
  });
  if constexpr (Io::kReading) check_profile(profile, io.at());
}

}  // namespace lockstep
