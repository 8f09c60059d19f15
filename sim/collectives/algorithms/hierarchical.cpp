#include "sim/collectives/algorithms/hierarchical.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr auto kAllReduce = CollectiveKind::all_reduce;

std::uint32_t filled(const Collective& collective, std::uint32_t ranks) {
  return std::clamp(collective.per_host, 1U, ranks);
}

}  // namespace

Hierarchical::Hierarchical(const Collective& collective, std::uint32_t ranks)
    : per_host_(filled(collective, ranks)),
      hosts_((ranks + per_host_ - 1) / per_host_),
      full_(ranks % per_host_ == 0),
      parts_(full_ ? per_host_ : 1),
      inside_(full_ ? per_host_ - 1 : Tree::levels_of(per_host_)),
      between_(hosts_ - 1),
      in_host_(kAllReduce, whole_elements(collective), collective.step.element, parts_),
      trees_{Tree(kAllReduce, in_host_.parts().bytes(0, parts_), {per_host_, 0}, inside_),
             Tree(kAllReduce, in_host_.parts().bytes(0, parts_), {ranks - between_ * per_host_, 0},
                  inside_)},
      larger_(static_cast<std::uint32_t>(whole_elements(collective) % parts_)),
      rings_{Ring(kAllReduce, in_host_.parts().elements(0), collective.step.element, hosts_),
             Ring(kAllReduce, in_host_.parts().elements(parts_ - 1), collective.step.element,
                  hosts_)} {}

Message Hierarchical::sent(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t host = rank / per_host_, local = rank % per_host_;
  if (!is_between(step)) {
    Message message =
        full_ ? in_host_.sent(local, inner(step)) : tree(host).sent(local, inner(step));
    message.peer += host * per_host_;
    message.first *= hosts_;
    message.chunks *= hosts_;
    return message;
  }
  if (!full_ && local != 0) return {};
  const std::uint32_t part = held(local);
  Message message = ring(part).sent(host, step - inside_);
  message.peer = message.peer * per_host_ + local;
  message.first += part * hosts_;
  return message;
}

std::uint32_t Hierarchical::source(std::uint32_t rank, std::uint32_t step) const {
  const std::uint32_t host = rank / per_host_, local = rank % per_host_;
  if (!is_between(step)) {
    const std::uint32_t from =
        full_ ? in_host_.source(local, inner(step)) : tree(host).source(local, inner(step));
    return host * per_host_ + from;
  }
  if (!full_ && local != 0) return rank;
  return ring(held(local)).source(host, step - inside_) * per_host_ + local;
}

Bytes Hierarchical::largest_inside() const {
  return full_ ? in_host_.chunk(0) : trees_[0].chunk(0);
}

}  // namespace lockstep
