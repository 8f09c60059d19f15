#include "sim/core/units.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/core/time.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

TEST_CASE("times are read with their unit") {
  CHECK(parse_time("12us") == Time::microseconds(12));
  CHECK(parse_time("12 us") == Time::microseconds(12));
  CHECK(parse_time("12\u00b5s") == Time::microseconds(12));
  CHECK(parse_time("1.5ms") == Time::microseconds(1500));
  CHECK(parse_time("0s") == Time());
  CHECK(parse_time("3ps") == Time::picoseconds(3));
  CHECK(parse_time("2e-3s") == Time::milliseconds(2));
  CHECK(parse_time("1E2ns") == Time::nanoseconds(100));
  CHECK(parse_time("2min") == Time::milliseconds(120'000));
  CHECK(parse_time("1h") == Time::milliseconds(3'600'000));
  // 0.0015 ns = 1.5 ps, halves away from zero.
  CHECK(parse_time("0.0015ns") == Time::picoseconds(2));
  // Exact beyond the 53 bits of a double.
  CHECK(parse_time("9007.199254740993s") == Time::picoseconds(9'007'199'254'740'993));
}

TEST_CASE("bytes are read with their unit") {
  CHECK(parse_bytes("25MiB") == Bytes{25 * 1024 * 1024});
  CHECK(parse_bytes("100MB") == Bytes{100'000'000});
  CHECK(parse_bytes("7B") == Bytes{7});
  CHECK(parse_bytes("1.5KiB") == Bytes{1536});
  CHECK(parse_bytes("2TiB") == Bytes{std::int64_t{2} << 40});
}

TEST_CASE("bandwidths are read in bytes or bits a second") {
  CHECK(parse_bandwidth("25GB/s") == Bandwidth{25'000'000'000});
  CHECK(parse_bandwidth("200Mbit/s") == Bandwidth{25'000'000});
  CHECK(parse_bandwidth("400Gbit/s") == Bandwidth{50'000'000'000});
  CHECK(parse_bandwidth("1.5 MiB/s") == Bandwidth{1'572'864});
}

TEST_CASE("what is no quantity is refused with a reason") {
  CHECK_THROWS_WITH(parse_time("25"), Contains("unit is missing") && Contains("12us"));
  CHECK_THROWS_WITH(parse_time("NaN s"), Contains("must be a number and a unit"));
  CHECK_THROWS_WITH(parse_time("inf s"), Contains("must be a number and a unit"));
  CHECK_THROWS_WITH(parse_time("-3us"), Contains("not negative"));
  CHECK_THROWS_WITH(parse_time(""), Contains("must be a number and a unit"));
  CHECK_THROWS_WITH(parse_time("us"), Contains("must be a number and a unit"));
  CHECK_THROWS_WITH(parse_time("."), Contains("must be a number and a unit"));
  CHECK_THROWS_WITH(parse_time("12 parsec"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_time("1.2.3us"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_time("3usus"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_time("3MiB"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_time("1e"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_time("1e+s"), Contains("exponent is broken"));
  CHECK_THROWS_WITH(parse_time("1e100s"), Contains("out of range"));
  CHECK_THROWS_WITH(parse_time("9223373s"), Contains("too large"));  // over 2^63 ps
  CHECK_THROWS_WITH(parse_time("1e30h"), Contains("too large"));
  CHECK_THROWS_WITH(parse_time("1e-20s"), Contains("too small"));
  CHECK_THROWS_WITH(parse_time("1e-90s"), Contains("too small"));
  CHECK_THROWS_WITH(parse_time("1234567890123456789s"), Contains("more than 18 digits"));
  CHECK_THROWS_WITH(parse_bytes("25MB/s"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_bytes("25mb"), Contains("unit must be one of"));
  CHECK_THROWS_WITH(parse_bytes("99999999TiB"), Contains("too large"));
  CHECK_THROWS_WITH(parse_bandwidth("10Gb"), Contains("Gbit/s"));
  CHECK_THROWS_WITH(parse_bandwidth("0GB/s"), Contains("above zero"));
  // A long text is not repeated whole.
  CHECK_THROWS_WITH(parse_time(std::string(100'000, 'x')), Contains("xxx...\""));
  CHECK_THROWS_AS(parse_time("25"), std::invalid_argument);
}

TEST_CASE("products are divided with 128 bits and rounded half away from zero") {
  CHECK(multiply_divide(7, 1, 2) == 4);    //  3.5
  CHECK(multiply_divide(-7, 1, 2) == -4);  // -3.5
  CHECK(multiply_divide(10, 1, 4) == 3);   //  2.5
  CHECK(multiply_divide(9, 1, 4) == 2);    //  2.25
  CHECK(multiply_divide(7, -1, 2) == -4);
  constexpr std::int64_t kLarge = std::numeric_limits<std::int64_t>::max();
  CHECK(multiply_divide(kLarge, kLarge, kLarge) == kLarge);
}

TEST_CASE("factors multiply and scale times") {
  CHECK(Factor::of(1) == Factor{});
  CHECK(Factor::of(1.5) * Factor::of(2) == Factor::of(3));
  CHECK(scale(Time::picoseconds(3), Factor::of(1.5)) == Time::picoseconds(5));  // 4.5
  CHECK(scale(Time::milliseconds(10), Factor::of(1.25)) == Time::microseconds(12'500));
  CHECK(scale(Time::milliseconds(10), Factor::of(0)) == Time());
}

TEST_CASE("a transfer takes bytes over bandwidth") {
  // 1 MiB at 25 GB/s = 41.94304 us.
  CHECK(transfer_time(kMiB, Bandwidth{25'000'000'000}) == Time::picoseconds(41'943'040));
  // 1 B at 3 B/s = a third of a second, rounded down.
  CHECK(transfer_time(Bytes{1}, Bandwidth{3}) == Time::picoseconds(333'333'333'333));
}

TEST_CASE("seconds become picoseconds, or are refused") {
  CHECK(Time::from_seconds(1e-6) == Time::microseconds(1));
  CHECK(Time::from_seconds(-1.6e-12) == Time::picoseconds(-2));
  CHECK_THROWS_AS(Time::from_seconds(std::nan("")), std::invalid_argument);
  CHECK_THROWS_AS(Time::from_seconds(1e10), std::invalid_argument);
}

TEST_CASE("quantities print with three digits") {
  CHECK(to_string(Time::microseconds(12'345)) == "12.3 ms");
  CHECK(to_string(Time::picoseconds(7)) == "7 ps");
  CHECK(to_string(Time::nanoseconds(-1500)) == "-1.50 us");
  CHECK(to_string(Time::picoseconds(999'999)) == "1.00 us");
  CHECK(to_string(Time()) == "0 ps");
  CHECK(to_string(Bytes{25 * 1024 * 1024}) == "25.0 MiB");
  CHECK(to_string(Bytes{123}) == "123 B");
  CHECK(to_string(Bandwidth{1'250'000'000}) == "1.25 GB/s");
  CHECK(to_string(Bandwidth{333'000'000'000}) == "333 GB/s");
}

}  // namespace
}  // namespace lockstep
