#pragma once

#include <exception>
#include <optional>

#include "runner/communicators/lost_peers.h"
#include "runner/measure/watch.h"
#include "sim/core/error.h"

namespace lockstep::runner {

/// Does `what`; tells the others, where nobody else does, why it fails.
template <class F>
void watched(std::optional<Watch>& watch, F what) {
  try {
    what();
  } catch (const LostPeers&) {
    if (watch) watch->find_out();
    throw;
  } catch (const InputError&) {
    throw;  // the others see it as well
  } catch (const std::exception& error) {
    if (watch) watch->fail(error.what());
    throw;
  }
}

}  // namespace lockstep::runner
