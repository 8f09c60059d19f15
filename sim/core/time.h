#pragma once

#include <compare>
#include <cstdint>

namespace lockstep {

/// A point in simulated time, or a span of it, in picoseconds: exact, so that a run is repeatable
/// to the bit. 63 bits hold 106 days.
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time picoseconds(std::int64_t ps) { return Time(ps); }
  static constexpr Time nanoseconds(std::int64_t ns) { return Time(ns * 1000); }
  static constexpr Time microseconds(std::int64_t us) { return Time(us * 1'000'000); }
  static constexpr Time milliseconds(std::int64_t ms) { return Time(ms * 1'000'000'000); }
  /// Rounds to the nearest picosecond. For measurements and files only; never inside the clock.
  static Time from_seconds(double seconds);

  constexpr std::int64_t ps() const { return ps_; }
  /// Rounded to the nearest nanosecond, halves away from zero.
  constexpr std::int64_t ns() const { return (ps_ + (ps_ < 0 ? -500 : 500)) / 1000; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
  constexpr double ms() const { return static_cast<double>(ps_) * 1e-9; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time& operator+=(Time other) {
    ps_ += other.ps_;
    return *this;
  }
  constexpr Time& operator-=(Time other) {
    ps_ -= other.ps_;
    return *this;
  }
  friend constexpr Time operator+(Time a, Time b) { return Time(a.ps_ + b.ps_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  friend constexpr Time operator*(Time a, std::int64_t k) { return Time(a.ps_ * k); }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

}  // namespace lockstep
