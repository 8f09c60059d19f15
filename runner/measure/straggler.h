#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/measure/pace.h"
#include "runner/measure/recorder.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// From "rank=1,factor=1.5", "rank=0,delay=20ms,phase=backward": a factor, a delay, or both. Or as
/// in a scenario, with all that varies there: "{worker: all, delay: {kind: log_normal, median: 5ms,
/// sigma: 0.5}, part: backward}". A worker cannot be made faster: factors drawn below one are one,
/// which the record says (Variability::least). InputError for what cannot be.
InjectedStraggler parse_straggler(const std::string& text);

/// InputError where a straggler's rank is none of `workers`.
void check_stragglers(const std::vector<InjectedStraggler>& stragglers, int workers);

/// The seed of what a repeat draws of its stragglers: every one draws anew.
std::uint64_t draws_of_repeat(std::uint64_t seed, int repeat);

/// A device that works behind its host: it is slowed by keeping it busy.
class BusyDevice {
 public:
  virtual ~BusyDevice() = default;
  /// For so many nanoseconds, behind everything that was issued so far.
  virtual void hold(Moment duration) = 0;
  /// What it takes undisturbed between this mark of a step and the one before; 0: not known.
  virtual Moment work_before(Mark mark, int layer) const = 0;
};

/// Makes one worker slower than it is: waits, by a factor, as long as work took, and for delays at
/// the beginnings of parts. What varies is drawn as in the simulator: for (seed, rank, step), by
/// the straggler's place in the list. A GPU is slowed beside its host: delays of forward and
/// backward are the device's, all others the host's; a factor is on both.
class Slowness {
 public:
  /// Those of `all` that are `rank`'s.
  Slowness(const std::vector<InjectedStraggler>& all, int rank, Moment spin,
           std::uint64_t seed = 1);

  bool any() const { return !mine_.empty(); }
  /// Of a worker on a GPU; `device` outlives this.
  void slow(BusyDevice& device) { device_ = &device; }
  /// In this step.
  double factor() const { return factor_; }
  /// Another step begins.
  void next_step();
  /// The delay at the beginning of a part.
  void delay(StepPart part);
  /// Work begins here.
  void begin_work();
  /// Waits for what the work since the last call, or since it began, falls short of.
  void catch_up();
  /// The same of the device, where it is not the host: for the work that ends at this mark.
  void stretch_device(Mark mark, int layer);

 private:
  struct Mine {
    InjectedStraggler straggler;
    std::uint32_t place = 0;  ///< in the list of all
    Time passed = {};         ///< when pauses by the clock were last looked for
  };
  DrawKey key(const Mine& mine) const;
  Time length_of(Mine& mine) const;

  std::vector<Mine> mine_;
  std::uint64_t seed_;
  std::uint32_t rank_;
  std::uint32_t step_ = 0;
  Moment begin_;  ///< of the clock of pauses
  double factor_ = 1;
  Pace pace_;
  Moment since_ = 0;
  BusyDevice* device_ = nullptr;  ///< null: the host computes
  Moment owed_ = 0;               ///< that the device was not held so far
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
