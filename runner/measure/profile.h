#pragma once

#include <vector>

#include "runner/measure/device.h"
#include "runner/measure/recorder.h"
#include "runner/models/model.h"
#include "sim/records/profile.h"

namespace lockstep::runner {

struct MarkedMoment {
  Mark mark = Mark::step_begin;
  int layer = -1;
  Moment at = 0;
};

/// Marks at the host's time: where the host computes, that is when the work was done.
class HostRecorder final : public Recorder {
 public:
  explicit HostRecorder(bool by_layer = true) : by_layer_(by_layer) {}
  void mark(Mark mark, int layer) override;
  bool layers() const override { return by_layer_; }
  const std::vector<MarkedMoment>& marks() const { return marks_; }
  void clear() { marks_.clear(); }

 private:
  bool by_layer_;
  std::vector<MarkedMoment> marks_;
};

/// A step cut at its marks; the parts add up to it.
struct StepParts {
  std::vector<Moment> forward, backward;  ///< by layer
  std::vector<int> backward_order;        ///< layers as their backward began
  Moment optimizer = 0;
  Moment other = 0;  ///< outside layers and optimizer
  Moment total = 0;
};
StepParts cut_at_marks(const std::vector<MarkedMoment>& marks, std::size_t layers);

/// Places in the order of backward, by layer. Layers that have no backward come last.
std::vector<int> places_in_backward(const std::vector<int>& backward_order, std::size_t layers);

/// Costs by layer from several steps: medians of each part, scaled together so that they add up to
/// the median step. `ready_order` holds indices in Model::parameters(). Host computes: host times
/// are zero.
Profile host_profile(const Model& model, const std::vector<StepParts>& steps,
                     const std::vector<int>& ready_order);

}  // namespace lockstep::runner
