#pragma once

#include <string>
#include <vector>

#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

struct Cost {
  Time host;    ///< time the host thread takes to issue it (zero on a CPU, where the host computes)
  Time device;  ///< time on the device, back to back
  int launches = 0;  ///< kernels launched
  bool operator==(const Cost&) const = default;
};

struct Parameter {
  std::string name;
  Bytes bytes;
  int ready_order = 0;  ///< place in the order in which gradients get ready in backward, from 0
  bool operator==(const Parameter&) const = default;
};

/// A leaf module. Layers are listed in forward order.
struct Layer {
  std::string name,
      kind;  ///< kind: "conv", "norm", "conv_norm", "linear", "activation", "pool", "add", "loss",
             ///< ...
  Cost forward, backward;
  int backward_order = 0;  ///< place in the order in which backward runs, from 0
  std::vector<Parameter> parameters;
  Bytes buffers;  ///< floating-point buffers that DDP broadcasts
  Bytes output;
  bool operator==(const Layer&) const = default;
};

/// What one model costs on one device at one batch size.
struct Profile {
  std::string model;
  int batch = 0;
  std::string precision = "fp32";
  std::string device;
  bool graph = false;  ///< measured as a CUDA graph of the whole step: no host times
  int beside = 1;      ///< workers that computed at the same time on the host (1: alone)
  std::vector<Layer> layers;
  Cost optimizer;
  Cost
      step_overhead;  ///< per step, outside layers and optimizer (zeroing gradients, synchronising)
  Cost
      gradient_hook;  ///< what a data-parallel strategy adds per parameter when a gradient is ready
  /// Of the workers that computed beside each other, by rank: their host times relative to those
  /// here. Empty: all alike.
  std::vector<double> host_of_rank;
  Time input_load, input_copy;
  Bytes input_bytes;
  Bytes peak;
  Time step;  ///< the whole `single` step measured in the same place, a check on the sum of the
              ///< layers
  double spread_between_processes = 0, spread_between_steps = 0;  ///< relative standard deviations
  bool operator==(const Profile&) const = default;
};

/// Calls `change` with the costs of all layers, of the optimizer and of the step's overhead.
template <class Change>
void for_each_cost(Profile& profile, Change change) {
  for (Layer& layer : profile.layers) {
    change(layer.forward);
    change(layer.backward);
  }
  change(profile.optimizer);
  change(profile.step_overhead);
}

Bytes parameter_bytes(const Layer& layer);
Bytes parameter_bytes(const Profile& profile);

}  // namespace lockstep
