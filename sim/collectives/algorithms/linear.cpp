#include "sim/collectives/algorithms/linear.h"

namespace lockstep {

Linear::Linear(const Collective& collective, std::uint32_t ranks)
    : kind_(collective.kind),
      ranks_(ranks),
      root_(collective.root),
      bytes_(collective.bytes),
      parts_(whole_elements(collective), ranks, collective.step.element) {}

bool Linear::between_all() const {
  return kind_ == CollectiveKind::all_gather || kind_ == CollectiveKind::reduce_scatter ||
         kind_ == CollectiveKind::all_to_all;
}

bool Linear::from_root(std::uint32_t step) const {
  return kind_ == CollectiveKind::broadcast || kind_ == CollectiveKind::scatter || step > 0;
}

std::uint32_t Linear::steps() const {
  if (ranks_ == 1) return 0;
  return kind_ == CollectiveKind::all_reduce ? 2 : 1;
}

std::uint32_t Linear::reducing() const {
  const bool adds = kind_ == CollectiveKind::reduce || kind_ == CollectiveKind::all_reduce ||
                    kind_ == CollectiveKind::reduce_scatter;
  return ranks_ > 1 && adds ? 1 : 0;
}

std::uint32_t Linear::chunks() const {
  if (kind_ == CollectiveKind::all_to_all) return ranks_ * ranks_;
  const bool apart = kind_ == CollectiveKind::gather || kind_ == CollectiveKind::scatter;
  return apart || between_all() ? ranks_ : 1;
}

Bytes Linear::chunk(std::uint32_t index) const {
  return between_all() ? parts_.bytes(index % ranks_) : bytes_;
}

Message Linear::piece(std::uint32_t from, std::uint32_t to, std::uint32_t peer) const {
  std::uint32_t index = 0;
  switch (kind_) {
    case CollectiveKind::gather:
    case CollectiveKind::all_gather:
      index = from;
      break;
    case CollectiveKind::scatter:
    case CollectiveKind::reduce_scatter:
      index = to;
      break;
    case CollectiveKind::all_to_all:
      index = from * ranks_ + to;
      break;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::all_reduce:
      break;
  }
  return {peer, index, 1, chunk(index)};
}

void Linear::sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  const auto send = [&](std::uint32_t to) {
    const Message message = piece(rank, to, to);
    if (to != rank && message.bytes > Bytes{}) out.push_back(message);
  };
  if (!between_all() && !from_root(step)) return send(root_);
  if (!between_all() && rank != root_) return;
  for (std::uint32_t to = 0; to < ranks_; ++to) send(to);
}

void Linear::receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  const auto receive = [&](std::uint32_t from) {
    const Message message = piece(from, rank, from);
    if (from != rank && message.bytes > Bytes{}) out.push_back(message);
  };
  if (!between_all() && from_root(step)) return receive(root_);
  if (!between_all() && rank != root_) return;
  for (std::uint32_t from = 0; from < ranks_; ++from) receive(from);
}

}  // namespace lockstep
