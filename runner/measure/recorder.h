#pragma once

#include <cstdint>

namespace lockstep::runner {

/// Moments of a training step. Leaf layers run one after another, so the marks cut a step into
/// pieces that add up to it: a layer's forward ends at its mark; its backward lasts from its mark
/// to the next one, and holds the work that makes the gradients of its parameters ready.
enum class Mark : std::uint8_t {
  step_begin,
  forward_begin,
  forward_end,     ///< of one layer
  backward_begin,  ///< of one layer: the gradient of its output is complete
  backward_end,    ///< of the whole backward
  optimizer_begin,
  optimizer_end,
  step_end,
};

/// Takes the marks of a step where it runs: at the host's time on a CPU, and between the launches
/// of kernels on a GPU. A model that is not being measured has none.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// `layer`: index in Model::layers(), -1 for a mark of the whole step.
  virtual void mark(Mark mark, int layer) = 0;
  /// False: it wants the marks of the whole step only.
  virtual bool layers() const { return true; }
};

}  // namespace lockstep::runner
