#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace lockstep {

/// Bytes per second in steps of 2^-20: fine enough that a share rounded down costs less than a
/// picosecond in a minute at 1 GB/s, and 8 TB/s still fit.
using Rate = std::int64_t;
inline constexpr int kRateBits = 20;
inline constexpr std::int64_t kLargestBandwidth = std::numeric_limits<Rate>::max() >> kRateBits;
/// The fastest that a link may be; one that bounds nothing is as fast. Exact as a double.
inline constexpr Bandwidth kFastestLink{8'000'000'000'000};
static_assert(kFastestLink.bytes_per_second <= kLargestBandwidth);

Rate to_rate(Bandwidth bandwidth);
/// Picoseconds that `bytes` take at `rate` (> 0); equal to transfer_time where the rate is whole.
std::int64_t flow_time(std::int64_t bytes, Rate rate);

/// Max-min fair sharing of links among flows by progressive filling (Bertsekas & Gallager, Data
/// Networks, 6.5.2): the link that allows the smallest equal share is filled first. Each flow takes
/// one unit of every link on its route and may have a bound of its own.
class Sharing {
 public:
  explicit Sharing(std::span<const Bandwidth> links);

  /// `route`: link indices, none twice. `bound`: zero for none. A flow with neither is an error.
  void add(std::uint32_t flow, std::span<const std::uint32_t> route, Bandwidth bound);
  void remove(std::uint32_t flow);
  /// Of a present flow that has a bound; the new one is above zero.
  void set_bound(std::uint32_t flow, Bandwidth bound);
  /// Rates of all flows, by flow; recomputed when flows came or went. Zero for absent ones.
  const std::vector<Rate>& rates();

 private:
  struct Flow {
    std::span<const std::uint32_t> route;
    Rate bound = 0;
    bool present = false;
    bool fixed = false;  ///< in fill(): its rate is known
  };
  void fill();
  bool fill_alone();
  std::pair<std::uint32_t, Rate> narrowest() const;
  void fix(std::uint32_t flow, Rate rate);

  std::vector<Rate> capacity_;
  std::vector<std::uint32_t> users_;  ///< flows on each link
  std::uint32_t shared_links_ = 0;    ///< links with more than one
  std::vector<Flow> flows_;
  std::vector<Rate> rates_;
  bool stale_ = false;
  // Scratch of fill().
  std::vector<Rate> left_;
  std::vector<std::uint32_t> open_users_;
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> used_links_;
};

}  // namespace lockstep
