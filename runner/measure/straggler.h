#pragma once

#include <string>
#include <vector>

#include "runner/measure/pace.h"
#include "runner/measure/recorder.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// From "rank=1,factor=1.5", "rank=0,delay=20ms,phase=backward": a factor, a delay, or both.
/// InputError for what cannot be.
InjectedStraggler parse_straggler(const std::string& text);

/// InputError where a straggler's rank is none of `workers`.
void check_stragglers(const std::vector<InjectedStraggler>& stragglers, int workers);

/// Makes one worker slower than it is: waits, by a factor, as long as work took, and for delays at
/// the beginnings of parts.
class Slowness {
 public:
  /// Those of `all` that are `rank`'s.
  Slowness(const std::vector<InjectedStraggler>& all, int rank, Moment spin);

  bool any() const { return !mine_.empty(); }
  double factor() const { return factor_; }
  /// The delay at the beginning of a part.
  void delay(StepPart part);
  /// Work begins here.
  void begin_work();
  /// Waits for what the work since the last call, or since it began, falls short of.
  void catch_up();

 private:
  std::vector<InjectedStraggler> mine_;
  double factor_ = 1;
  Pace pace_;
  Moment since_ = 0;
};

/// Slows the work between the marks of a step, layer by layer, before it hands them on.
class SlowRecorder final : public Recorder {
 public:
  /// `inner` may be null.
  SlowRecorder(Slowness& slowness, Recorder* inner) : slowness_(slowness), inner_(inner) {}
  void mark(Mark mark, int layer) override;

 private:
  Slowness& slowness_;
  Recorder* inner_;
};

}  // namespace lockstep::runner
