#include "sim/collectives/steps.h"

#include "sim/collectives/algorithms.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

/// A rank sends one message in a step and receives one, at most.
template <class Way>
concept OneMessage = requires(const Way& way) { way.source(0U, 0U); };

}  // namespace

StepPlan::Way StepPlan::way_of(const Collective& collective, std::uint32_t ranks) {
  LOCKSTEP_ASSERT(ranks > 0 && collective.step.element > Bytes{},
                  "a collective has ranks and elements");
  LOCKSTEP_ASSERT(can_run(collective.kind, collective.algorithm),
                  "an algorithm fits its collective");
  LOCKSTEP_ASSERT(collective.root < ranks, "the root is one of the ranks");
  switch (collective.algorithm) {
    case Algorithm::ring:
      if (collective.kind == CollectiveKind::broadcast) return Chain(collective, ranks);
      return Ring(collective, ranks);
    case Algorithm::chain:
      return Chain(collective, ranks);
    case Algorithm::gloo_ring:
      return GlooRing(collective, ranks);
    case Algorithm::tree:
      return Tree(collective, ranks);
    case Algorithm::recursive_doubling:
      return Doubling(collective, ranks);
    case Algorithm::halving_doubling:
    case Algorithm::recursive_halving:
      return Halving(collective, ranks);
    case Algorithm::linear:
      return Linear(collective, ranks);
    case Algorithm::pairwise:
      return Pairwise(collective, ranks);
    case Algorithm::hierarchical:
      return Hierarchical(collective, ranks);
    case Algorithm::double_tree:
      break;
  }
  return DoubleTree(collective, ranks);
}

StepPlan::StepPlan(const Collective& collective, std::uint32_t ranks)
    : way_(way_of(collective, ranks)), ranks_(ranks) {
  steps_ = std::visit([](const auto& way) { return way.steps(); }, way_);
  reducing_ = std::visit([](const auto& way) { return way.reducing(); }, way_);
}

void StepPlan::sends(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  std::visit(
      [&](const auto& way) {
        if constexpr (OneMessage<decltype(way)>) {
          const Message message = way.sent(rank, step);
          if (message.bytes > Bytes{}) out.push_back(message);
        } else {
          way.sends(rank, step, out);
        }
      },
      way_);
}

void StepPlan::receives(std::uint32_t rank, std::uint32_t step, std::vector<Message>& out) const {
  std::visit(
      [&](const auto& way) {
        if constexpr (OneMessage<decltype(way)>) {
          const std::uint32_t from = way.source(rank, step);
          Message message = way.sent(from, step);
          if (message.bytes == Bytes{} || message.peer != rank) return;
          message.peer = from;
          out.push_back(message);
        } else {
          way.receives(rank, step, out);
        }
      },
      way_);
}

std::uint32_t StepPlan::needed(std::uint32_t step) const {
  const auto* gloo = std::get_if<GlooRing>(&way_);
  return gloo != nullptr ? gloo->needed(step) : step;
}

std::uint32_t StepPlan::chunks() const {
  return std::visit([](const auto& way) { return way.chunks(); }, way_);
}

Bytes StepPlan::chunk(std::uint32_t index) const {
  return std::visit([index](const auto& way) { return way.chunk(index); }, way_);
}

bool StepPlan::even() const {
  if (ranks_ == 1) return true;
  const bool rings = std::holds_alternative<Ring>(way_) || std::holds_alternative<GlooRing>(way_);
  return rings && chunk(0) == chunk(chunks() - 1);
}

}  // namespace lockstep
