#pragma once

#include "sim/core/error.h"

namespace lockstep::runner {

/// A worker cannot go on because it does not reach others. Whose fault that is, it cannot know.
class LostPeers : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace lockstep::runner
