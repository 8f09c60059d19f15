#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::runner {

/// What the host does between the collectives of a step: launches of several kinds, each so small
/// that the device keeps up. A call that comes behind them finds the host's caches as it does
/// there.
class OtherLaunches {
 public:
  OtherLaunches();  ///< chooses the algorithms
  void issue() const;

 private:
  at::Tensor image_, weight_, scale_, shift_, mean_, variance_, matrix_;
};

}  // namespace lockstep::runner
