#pragma once

#include <vector>

#include "runner/measure/recorder.h"
#include "runner/measure/straggler.h"
#include "runner/models/model.h"
#include "runner/strategies/strategy.h"
#include "sim/records/profile.h"

namespace lockstep::runner {

/// A network with the profile's parameters and buffers, flat and in the profile's order, for a
/// strategy to share and reduce. It cannot compute.
Model replayed_model(const Profile& profile);

/// A training step without the computing: waits as long as the profile says for the work between
/// steps, each layer's forward, each layer's backward in the order in which they ran, and the
/// optimizer. After its layer's backward every gradient gets ready, in the profiled order, and the
/// strategy does with it what it always does, its copies and communication included.
class Replay {
 public:
  /// `model` is replayed_model(profile). `slowness` may be null. All outlive this.
  Replay(const Profile& profile, const Model& model, Strategy& strategy, Slowness* slowness,
         Moment spin);
  /// One iteration; with a recorder, its marks.
  void step(Recorder* recorder);
  /// What a loader takes for a batch.
  void load();

 private:
  void forward(Recorder* recorder);
  void backward(Recorder* recorder);
  void pass(const Cost& cost);
  void begin(StepPart part);

  const Profile& profile_;
  const Model& model_;
  Strategy& strategy_;
  Slowness* slowness_;
  Pace pace_;
  std::vector<std::uint32_t> backward_order_;
  std::vector<std::vector<int>> ready_after_;  ///< by layer, parameters in ready order
  std::vector<at::Tensor> gradients_;          ///< by parameter
};

}  // namespace lockstep::runner
