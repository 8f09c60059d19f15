#pragma once

#include <cstdint>
#include <vector>

#include "runner/communicators/communicator.h"

namespace lockstep::runner {

/// Every rank's numbers, by rank, on every rank; all give equally many. Alone: one row.
std::vector<std::vector<std::int64_t>> gather(Communicator* communicator,
                                              const std::vector<std::int64_t>& mine,
                                              c10::Device device);

/// Rank 0's number, on every rank.
std::int64_t agree(Communicator* communicator, std::int64_t mine, c10::Device device);

}  // namespace lockstep::runner
