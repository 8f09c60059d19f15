#include "sim/platform/sharing.h"

#include <algorithm>

#include "sim/core/error.h"

namespace lockstep {

Rate to_rate(Bandwidth bandwidth) {
  LOCKSTEP_ASSERT(
      bandwidth.bytes_per_second >= 0 && bandwidth.bytes_per_second <= kLargestBandwidth,
      "bandwidths up to 8 TB/s");
  return bandwidth.bytes_per_second << kRateBits;
}

std::int64_t flow_time(std::int64_t bytes, Rate rate) {
  constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
  return multiply_divide(bytes, kPicosecondsPerSecond << kRateBits, rate);
}

Sharing::Sharing(std::span<const Bandwidth> links)
    : users_(links.size(), 0), left_(links.size(), 0), open_users_(links.size(), 0) {
  for (const Bandwidth& link : links) capacity_.push_back(to_rate(link));
}

void Sharing::add(std::uint32_t flow, std::span<const std::uint32_t> route, Bandwidth bound) {
  LOCKSTEP_ASSERT(!route.empty() || bound.bytes_per_second > 0, "something bounds every flow");
  if (flow >= flows_.size()) {
    flows_.resize(flow + 1);
    rates_.resize(flow + 1, 0);
  }
  LOCKSTEP_ASSERT(!flows_[flow].present, "a flow is added once");
  flows_[flow] = {route, to_rate(bound), true};
  for (const std::uint32_t link : route) shared_links_ += ++users_[link] == 2 ? 1 : 0;
  stale_ = true;
}

void Sharing::remove(std::uint32_t flow) {
  LOCKSTEP_ASSERT(flow < flows_.size() && flows_[flow].present, "only a present flow goes");
  for (const std::uint32_t link : flows_[flow].route) {
    shared_links_ -= --users_[link] == 1 ? 1 : 0;
  }
  flows_[flow].present = false;
  rates_[flow] = 0;
  stale_ = true;
}

void Sharing::set_bound(std::uint32_t flow, Bandwidth bound) {
  LOCKSTEP_ASSERT(
      flow < flows_.size() && flows_[flow].present && flows_[flow].bound > 0 && bound > Bandwidth{},
      "a bound changes, it does not come or go");
  flows_[flow].bound = to_rate(bound);
  stale_ = true;
}

const std::vector<Rate>& Sharing::rates() {
  if (stale_) fill();
  stale_ = false;
  return rates_;
}

/// Its links have that much less for the others.
void Sharing::fix(std::uint32_t flow, Rate rate) {
  rates_[flow] = rate;
  flows_[flow].fixed = true;
  for (const std::uint32_t link : flows_[flow].route) {
    left_[link] -= rate;
    --open_users_[link];
  }
}

/// Every flow at what it would get alone; true where that is the answer, no link being shared.
bool Sharing::fill_alone() {
  open_.clear();
  for (std::uint32_t f = 0; f < flows_.size(); ++f) {
    if (!flows_[f].present) continue;
    rates_[f] = flows_[f].bound > 0 ? flows_[f].bound : std::numeric_limits<Rate>::max();
    for (const std::uint32_t link : flows_[f].route) {
      rates_[f] = std::min(rates_[f], capacity_[link]);
    }
    open_.push_back(f);
  }
  return shared_links_ == 0;
}

/// The link that allows the smallest equal share of what is left, and that share.
std::pair<std::uint32_t, Rate> Sharing::narrowest() const {
  std::pair<std::uint32_t, Rate> best{0, std::numeric_limits<Rate>::max()};
  for (const std::uint32_t link : used_links_) {
    if (open_users_[link] == 0) continue;
    const Rate fair = left_[link] / static_cast<Rate>(open_users_[link]);
    if (fair < best.second) best = {link, fair};
  }
  return best;
}

void Sharing::fill() {
  if (fill_alone()) return;
  used_links_.clear();
  for (const std::uint32_t f : open_) {
    flows_[f].fixed = false;
    for (const std::uint32_t link : flows_[f].route) {
      if (open_users_[link]++ > 0) continue;
      left_[link] = capacity_[link];
      used_links_.push_back(link);
    }
  }
  std::sort(used_links_.begin(), used_links_.end());
  while (!open_.empty()) {
    const auto [link, share] = narrowest();
    // Flows whose own bound lies below every fair share are not held back by links; where there
    // are none, the narrowest link holds back all that use it.
    const auto holds_back = [&, bottleneck = link](const Flow& flow) {
      return std::find(flow.route.begin(), flow.route.end(), bottleneck) != flow.route.end();
    };
    bool bounded = false;
    for (const std::uint32_t f : open_) {
      const Flow& flow = flows_[f];
      if (flow.bound == 0 || flow.bound > share) continue;
      fix(f, flow.bound);
      bounded = true;
    }
    for (const std::uint32_t f : open_) {
      if (!bounded && holds_back(flows_[f])) fix(f, share);
    }
    std::erase_if(open_, [&](std::uint32_t f) { return flows_[f].fixed; });
  }
}

}  // namespace lockstep
