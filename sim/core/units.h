#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/core/time.h"

namespace lockstep {

__extension__ using Uint128 = unsigned __int128;

/// An amount of memory or traffic.
struct Bytes {
  std::int64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes b) {
    count += b.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
};
inline constexpr Bytes kKiB{1024};
inline constexpr Bytes kMiB{1024 * 1024};

/// Bytes per second, whole.
struct Bandwidth {
  std::int64_t bytes_per_second = 0;
  constexpr auto operator<=>(const Bandwidth&) const = default;
};

/// A dimensionless factor in steps of 2^-32: slow-downs, speeds and noise multiply times by it.
class Factor {
 public:
  constexpr Factor() = default;
  /// Rounds to the nearest step; 0 <= value < 2^31.
  static Factor of(double value);
  constexpr std::uint64_t raw() const { return raw_; }
  constexpr double value() const { return static_cast<double>(raw_) * 0x1p-32; }
  constexpr auto operator<=>(const Factor&) const = default;
  friend Factor operator*(Factor a, Factor b);
  /// One where share is zero, `factor` where it is one, and a straight line between.
  friend Factor in_part(Factor factor, Factor share);

 private:
  std::uint64_t raw_ = std::uint64_t{1} << 32;
};

/// a * b / c, rounded to the nearest, halves away from zero, with a 128-bit product: the one rule
/// by which times and amounts are rounded. c > 0; the result must fit 63 bits.
std::int64_t multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c);

/// multiply_divide(time, factor, 1), inline because the engine calls it for every task. time >= 0.
inline Time scale(Time time, Factor factor) {
  const auto ps = static_cast<std::uint64_t>(time.ps());
  const Uint128 product = Uint128{ps} * factor.raw() + (std::uint64_t{1} << 31);
  return Time::picoseconds(static_cast<std::int64_t>(product >> 32));
}
/// Time to move `amount` at `rate` (> 0), without latency.
Time transfer_time(Bytes amount, Bandwidth rate);

/// Readers of hand-written quantities: "12us", "1.5ms", "25MiB", "100MB", "25GB/s", "200Mbit/s".
/// A unit is required. They throw std::invalid_argument with what is wrong and what would be right;
/// the caller adds file, line and column.
Time parse_time(std::string_view text);
Bytes parse_bytes(std::string_view text);
Bandwidth parse_bandwidth(std::string_view text);

/// For tables people read: "12.3 ms", "25.0 MiB", "1.25 GB/s".
std::string to_string(Time time);
std::string to_string(Bytes bytes);
std::string to_string(Bandwidth bandwidth);

}  // namespace lockstep
