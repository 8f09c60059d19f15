#include "sim/core/units.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

#include "sim/core/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// a * b / c to the nearest, halves up, for a, b >= 0 and c > 0. False if it does not fit 63 bits.
bool divide_product(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t& result) {
  const Uint128 quotient = (Uint128{a} * b + c / 2) / c;
  result = static_cast<std::uint64_t>(quotient);
  return quotient <= static_cast<Uint128>(kMax);
}

struct Unit {
  std::string_view name;
  std::int64_t scale;    ///< numerator: how many base units one of it is
  std::int64_t per = 1;  ///< denominator (bits: eight to the byte)
};

constexpr std::array kTimeUnits = std::to_array<Unit>({{"ps", 1},
                                                       {"ns", 1'000},
                                                       {"us", 1'000'000},
                                                       {"\u00b5s", 1'000'000},
                                                       {"ms", 1'000'000'000},
                                                       {"s", 1'000'000'000'000},
                                                       {"min", 60'000'000'000'000},
                                                       {"h", 3'600'000'000'000'000}});
constexpr std::array kByteUnits = std::to_array<Unit>({{"B", 1},
                                                       {"kB", 1'000},
                                                       {"MB", 1'000'000},
                                                       {"GB", 1'000'000'000},
                                                       {"TB", 1'000'000'000'000},
                                                       {"KiB", std::int64_t{1} << 10},
                                                       {"MiB", std::int64_t{1} << 20},
                                                       {"GiB", std::int64_t{1} << 30},
                                                       {"TiB", std::int64_t{1} << 40}});
constexpr std::array kRateUnits = std::to_array<Unit>({{"B/s", 1},
                                                       {"kB/s", 1'000},
                                                       {"MB/s", 1'000'000},
                                                       {"GB/s", 1'000'000'000},
                                                       {"TB/s", 1'000'000'000'000},
                                                       {"KiB/s", std::int64_t{1} << 10},
                                                       {"MiB/s", std::int64_t{1} << 20},
                                                       {"GiB/s", std::int64_t{1} << 30},
                                                       {"TiB/s", std::int64_t{1} << 40},
                                                       {"bit/s", 1, 8},
                                                       {"kbit/s", 1'000, 8},
                                                       {"Mbit/s", 1'000'000, 8},
                                                       {"Gbit/s", 1'000'000'000, 8},
                                                       {"Tbit/s", 1'000'000'000'000, 8}});

struct Quantity {
  std::string_view what;     ///< "time"
  std::string_view example;  ///< "12us"
  std::span<const Unit> units;
};

[[noreturn]] void reject(const Quantity& quantity, std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 40;
  std::string shown(text.substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  throw std::invalid_argument(fmt::format("\"{}\" is not a {}: {}, as in \"{}\"", shown,
                                          quantity.what, why, quantity.example));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// mantissa / 10^decimals, or mantissa * 10^-decimals.
struct Decimal {
  std::uint64_t mantissa = 0;
  int decimals = 0;
};

/// Takes "12", "1.5" or "1e-3" off the front of `rest`; at most 18 digits, so that it is exact.
Decimal take_number(const Quantity& quantity, std::string_view text, std::string_view& rest) {
  Decimal number;
  int digits = 0;
  bool point = false;
  while (!rest.empty() && (is_digit(rest.front()) || (rest.front() == '.' && !point))) {
    if (rest.front() == '.') {
      point = true;
    } else {
      if (++digits > 18) reject(quantity, text, "it has more than 18 digits");
      number.mantissa = number.mantissa * 10 +
                        static_cast<std::uint64_t>(static_cast<unsigned char>(rest[0]) - '0');
      if (point) ++number.decimals;
    }
    rest.remove_prefix(1);
  }
  if (digits == 0) reject(quantity, text, "it must be a number and a unit, not negative");
  if (rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E')) {
    std::string_view tail = rest.substr(1);
    const bool minus = tail.front() == '-';
    if (minus || tail.front() == '+') tail.remove_prefix(1);
    int exponent = 0;
    if (tail.empty() || !is_digit(tail.front())) reject(quantity, text, "its exponent is broken");
    for (; !tail.empty() && is_digit(tail.front()); tail.remove_prefix(1)) {
      exponent = exponent * 10 + (tail.front() - '0');
      if (exponent > 99) reject(quantity, text, "its exponent is out of range");
    }
    number.decimals += minus ? exponent : -exponent;
    rest = tail;
  }
  return number;
}

std::int64_t to_base(const Quantity& quantity, std::string_view text, Decimal number,
                     const Unit& unit) {
  auto scale = static_cast<std::uint64_t>(unit.scale);
  auto per = static_cast<std::uint64_t>(unit.per);
  const std::string too_large = "it is too large";
  for (; number.decimals < 0 && number.mantissa > 0; ++number.decimals) {
    if (number.mantissa > static_cast<std::uint64_t>(kMax) / 10) reject(quantity, text, too_large);
    number.mantissa *= 10;
  }
  for (; number.decimals > 0; --number.decimals) {
    if (per > static_cast<std::uint64_t>(kMax) / 10) {
      if (number.mantissa == 0) break;
      reject(quantity, text, "it is too small");
    }
    per *= 10;
  }
  std::uint64_t result = 0;
  if (!divide_product(number.mantissa, scale, per, result)) reject(quantity, text, too_large);
  if (result == 0 && number.mantissa > 0) reject(quantity, text, "it is too small");
  return static_cast<std::int64_t>(result);
}

std::int64_t parse(const Quantity& quantity, std::string_view text) {
  std::string_view rest = text;
  const Decimal number = take_number(quantity, text, rest);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : quantity.units) {
    if (rest == unit.name) return to_base(quantity, text, number, unit);
  }
  std::string names;
  for (const Unit& unit : quantity.units) names += fmt::format("{} ", unit.name);
  names.pop_back();
  reject(quantity, text,
         rest.empty() ? fmt::format("its unit is missing ({})", names)
                      : fmt::format("its unit must be one of {}", names));
}

/// Three significant digits in the largest unit of a ladder in which it is at least one.
std::string readable(double value, double step, std::span<const std::string_view> ladder) {
  const bool negative = value < 0;
  value = std::abs(value);
  std::size_t i = 0;
  while (i + 1 < ladder.size() && value >= step * (1 - 0.0005)) {
    value /= step;
    ++i;
  }
  const int decimals = i == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", negative ? "-" : "", value, decimals, ladder[i]);
}

constexpr Quantity kTime{"time", "12us", kTimeUnits};
constexpr Quantity kAmount{"number of bytes", "25MiB", kByteUnits};
constexpr Quantity kRate{"bandwidth", "25GB/s", kRateUnits};

}  // namespace

Factor Factor::of(double value) {
  LOCKSTEP_ASSERT(value >= 0 && value < 0x1p31, "a factor lies in [0, 2^31)");
  Factor factor;
  factor.raw_ = static_cast<std::uint64_t>(std::llround(value * 0x1p32));
  return factor;
}

Factor operator*(Factor a, Factor b) {
  Factor product;
  const bool fits = divide_product(a.raw_, b.raw_, std::uint64_t{1} << 32, product.raw_);
  LOCKSTEP_ASSERT(fits, "a product of factors stays below 2^31");
  return product;
}

Factor in_part(Factor factor, Factor share) {
  if (share == Factor{}) return factor;
  constexpr std::int64_t kOne = std::int64_t{1} << 32;
  const auto above = static_cast<std::int64_t>(factor.raw_) - kOne;
  Factor result;
  result.raw_ = static_cast<std::uint64_t>(
      kOne + multiply_divide(above, static_cast<std::int64_t>(share.raw_), kOne));
  return result;
}

std::int64_t multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c) {
  LOCKSTEP_ASSERT(c > 0, "divisor above zero");
  const bool negative = (a < 0) != (b < 0);
  const auto magnitude = [](std::int64_t x) {
    return x < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
  };
  std::uint64_t result = 0;
  const bool fits =
      divide_product(magnitude(a), magnitude(b), static_cast<std::uint64_t>(c), result);
  LOCKSTEP_ASSERT(fits, "a time or an amount fits 63 bits");
  const auto value = static_cast<std::int64_t>(result);
  return negative ? -value : value;
}

Time transfer_time(Bytes amount, Bandwidth rate) {
  constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
  return Time::picoseconds(
      multiply_divide(amount.count, kPicosecondsPerSecond, rate.bytes_per_second));
}

Time parse_time(std::string_view text) {
  return Time::picoseconds(parse(kTime, text));
}

Bytes parse_bytes(std::string_view text) {
  return Bytes{parse(kAmount, text)};
}

Bandwidth parse_bandwidth(std::string_view text) {
  const Bandwidth rate{parse(kRate, text)};
  if (rate.bytes_per_second == 0) reject(kRate, text, "it must be above zero");
  return rate;
}

std::string to_string(Time time) {
  static constexpr std::array<std::string_view, 5> kLadder{"ps", "ns", "us", "ms", "s"};
  return readable(static_cast<double>(time.ps()), 1000, kLadder);
}

std::string to_string(Bytes bytes) {
  static constexpr std::array<std::string_view, 5> kLadder{"B", "KiB", "MiB", "GiB", "TiB"};
  return readable(static_cast<double>(bytes.count), 1024, kLadder);
}

std::string to_string(Bandwidth bandwidth) {
  static constexpr std::array<std::string_view, 5> kLadder{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return readable(static_cast<double>(bandwidth.bytes_per_second), 1000, kLadder);
}

}  // namespace lockstep
