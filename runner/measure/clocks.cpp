#include "runner/measure/clocks.h"

#include <ATen/ops/zeros.h>

#include <limits>

#include "runner/measure/clock.h"
#include "runner/measure/gather.h"
#include "runner/measure/pace.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr int kQuestions = 12;
constexpr Moment kPatience = 1'000'000;  // ns by which the one that is asked answers last

/// Start and end of one way of a question and its answer, as this rank saw them.
struct Stamps {
  Moment out_begin = 0, out_end = 0, back_begin = 0, back_end = 0;
};

Stamps ask(Communicator& communicator, Device& device, int peer) {
  const auto options = at::TensorOptions().device(device.torch());
  const bool root = communicator.rank() == 0;
  const at::Tensor token = at::zeros({1}, options);
  std::vector<at::Tensor> parts;
  if (root) parts.assign(static_cast<std::size_t>(communicator.size()), token.clone());
  const at::Tensor all = root ? at::zeros({communicator.size()}, options) : at::Tensor();
  communicator.barrier();
  communicator.scatter(parts, token, 0);
  communicator.join();
  if (communicator.rank() == peer) wait_until(host_now() + kPatience, 0);
  communicator.gather(token, all, 0);
  const std::vector<Transfer> transfers = communicator.take_transfers();
  LOCKSTEP_ASSERT(transfers.size() == 2, "a question and an answer");
  return {.out_begin = transfers[0].launch,
          .out_end = transfers[0].done,
          .back_begin = transfers[1].launch,
          .back_end = transfers[1].done};
}

}  // namespace

std::vector<Moment> clock_offsets(Communicator& communicator, Device& device) {
  communicator.take_transfers();
  std::vector<Moment> offsets(static_cast<std::size_t>(communicator.size()), 0);
  for (int peer = 1; peer < communicator.size(); ++peer) {
    Moment quickest = std::numeric_limits<Moment>::max();
    for (int i = 0; i < kQuestions; ++i) {
      const Stamps mine = ask(communicator, device, peer);
      const auto all =
          gather(&communicator, {mine.out_begin, mine.out_end, mine.back_begin, mine.back_end},
                 device.torch());
      const auto& here = all.front();
      const auto& there = all[static_cast<std::size_t>(peer)];
      const Moment both_ways = (here[3] - here[0]) - (there[2] - there[1]);
      if (both_ways >= quickest) continue;
      quickest = both_ways;
      offsets[static_cast<std::size_t>(peer)] = ((here[0] - there[1]) + (here[3] - there[2])) / 2;
    }
  }
  return offsets;
}

}  // namespace lockstep::runner
