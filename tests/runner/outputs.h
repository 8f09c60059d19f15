#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

#include "runner/data/loader.h"
#include "runner/measure/profile.h"
#include "runner/models/model.h"

namespace lockstep::testing {

/// Floats that each layer puts out for one sample, by its name.
inline std::map<std::string, std::int64_t> outputs(runner::Model& model) {
  runner::HostRecorder recorder;
  const runner::Batch batch = runner::random_batch(model, 1, 1, c10::kCPU);
  model.loss(batch.input, batch.target, &recorder);
  std::map<std::string, std::int64_t> floats;
  for (const runner::ModelLayer& layer : model.layers()) {
    floats[layer.name] = layer.output_bytes / 4;
  }
  return floats;
}

}  // namespace lockstep::testing
