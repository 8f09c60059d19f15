#pragma once

#include <cstdint>

#include "sim/core/time.h"
#include "sim/core/units.h"

namespace lockstep {

/// One end of a message of a collective: the rank at the other end, and what goes. The array is cut
/// into chunks, numbered from 0; a message holds `chunks` of them from `first` on, and behind the
/// last one comes the first again.
struct Message {
  std::uint32_t peer = 0;
  std::uint32_t first = 0, chunks = 0;
  Bytes bytes;
};

/// A message as it went: from when both ends were ready for it until it had arrived.
struct MessageSpan {
  std::uint32_t collective = 0;  ///< index in TaskGraph::collectives
  std::uint32_t step = 0;        ///< of the sender
  std::uint32_t from = 0, to = 0;
  Time start, end;
  bool operator==(const MessageSpan&) const = default;
};

}  // namespace lockstep
