#include "runner/measure/estimate.h"

#include "tests/catch.h"

namespace lockstep::runner {
namespace {

Time ms(std::int64_t value) {
  return Time::milliseconds(value);
}

TEST_CASE("A block holds steps for 200 ms, at most twelve and at least one") {
  CHECK(steps_per_block(ms(50), 30) == 4);
  CHECK(steps_per_block(ms(1), 30) == 12);
  CHECK(steps_per_block(ms(1), 5) == 5);
  CHECK(steps_per_block(ms(900), 30) == 1);
  CHECK(steps_per_block(Time{}, 30) == 12);
}

TEST_CASE("A piece is warmed up once and then measured in rounds") {
  // A round of one step each takes 200 ms of steps and 50 ms of the reference kernel; what is left
  // of the whole, 750 ms, comes once. A step takes 100 ms, so a block holds 2.
  const QuickPass quick{.whole = ms(1000), .steps = ms(200), .speeds = ms(50), .step = ms(100)};
  // 10 steps are 5 rounds of 2 * 200 + 50.
  const PieceEstimate same = estimate_piece("x", quick, 1, 10);
  CHECK(same.name == "x");
  CHECK(same.least == ms(750 + 450));
  CHECK(same.full == ms(750 + 5 * 450));
  // Twice the batch: a step takes 200 ms, a block holds 1; 10 rounds of 400 + 50.
  const PieceEstimate twice = estimate_piece("x", quick, 2, 10);
  CHECK(twice.least == ms(1500 + 450));
  CHECK(twice.full == ms(1500 + 10 * 450));
}

TEST_CASE("A budget is shared by what pieces need and then by what they could use") {
  const std::vector<PieceEstimate> pieces{
      {"a", ms(100), ms(100)}, {"b", ms(100), ms(400)}, {"c", ms(200), ms(800)}};
  // 400 are needed; the 450 more go to b and c as the cube roots of what they could use, 300 and
  // 600: 1 to 1.26, so 199.1 and 250.9.
  const std::vector<Time> tight = shares(pieces, ms(850));
  REQUIRE(tight.size() == 3);
  CHECK(tight[0] == ms(100));
  CHECK(tight[1].ms() == Approx(299.1).margin(0.05));
  CHECK(tight[2].ms() == Approx(450.9).margin(0.05));
  // Of 800 more b's part would be 354, above what it could use: the rest is c's.
  const std::vector<Time> ample = shares(pieces, ms(1200));
  CHECK(ample[1] == ms(400));
  CHECK(ample[2].ms() == Approx(700));
  CHECK(shares(pieces, ms(1300)) == std::vector{ms(100), ms(400), ms(800)});
  CHECK(shares(pieces, ms(2600)) == std::vector{ms(200), ms(800), ms(1600)});
  CHECK(shares(pieces, ms(50)) == std::vector{ms(100), ms(100), ms(200)});
  CHECK(sum_least(pieces) == ms(400));
  CHECK(sum_full(pieces) == ms(1300));
  CHECK(shares({}, ms(1)).empty());
}

TEST_CASE("Times are said as exactly as they are known") {
  CHECK(about(ms(300)) == "about 1 s");
  CHECK(about(ms(8'700)) == "about 9 s");
  CHECK(about(ms(42'000)) == "about 40 s");
  CHECK(about(ms(161'000)) == "about 2 min 40 s");
  CHECK(about(ms(1'234'000)) == "about 21 min");
  CHECK(about(ms(7'500'000)) == "about 2 h 05 min");
  CHECK(span(ms(8'949)) == "8.9 s");
  CHECK(span(ms(161'400)) == "2 min 41 s");
  CHECK(span(ms(59'990)) == "1 min 00 s");
  CHECK(span(ms(7'500'000)) == "2 h 05 min");
}

}  // namespace
}  // namespace lockstep::runner
