#include "runner/measure/table_sizes.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include "tests/catch.h"

namespace lockstep::runner {
namespace {

std::vector<std::int64_t> counts(const std::vector<Bytes>& sizes) {
  std::vector<std::int64_t> result;
  for (const Bytes size : sizes) result.push_back(size.count);
  return result;
}

/// Microseconds of a made-up collective: 10 us + 1 us a KiB, and `jump` more from 5000 bytes on.
AgreedPoint point_at(Bytes size, double jump) {
  const double us = 10 + static_cast<double>(size.count) / 1024 + (size.count >= 5000 ? jump : 0);
  AgreedPoint result;
  result.point.bytes = size;
  result.agreed = result.point.p50 = Time::from_seconds(us * 1e-6);
  return result;
}

std::vector<AgreedPoint> points_at(const std::vector<Bytes>& sizes, double jump) {
  std::vector<AgreedPoint> points;
  for (const Bytes size : sizes) points.push_back(point_at(size, jump));
  return points;
}

TEST_CASE("sizes grow by a factor as far as the largest, and hold it") {
  CHECK(counts(growing_sizes({1024}, {8192}, 2)) ==
        std::vector<std::int64_t>{1024, 2048, 4096, 8192});
  CHECK(counts(growing_sizes({1024}, {10'000}, 4)) ==
        std::vector<std::int64_t>{1024, 4096, 10'000});
  CHECK(counts(growing_sizes({1024}, {1024}, 4)) == std::vector<std::int64_t>{1024});
}

TEST_CASE("large gradients are no powers of two") {
  // 4096 and 8192 times the square root of two, rounded down to 64 bytes: 5792.6, 11585.2.
  CHECK(counts(gradient_sizes({1024}, {16'384})) ==
        std::vector<std::int64_t>{1024, 2048, 5760, 11'584, 16'384});
  CHECK(counts(gradient_sizes({1024}, {10'000})) ==
        std::vector<std::int64_t>{1024, 2048, 5760, 10'000});
}

TEST_CASE("sizes held out lie between neighbours and are none that is refined") {
  const std::vector<Bytes> sizes = growing_sizes(kKiB, {512 * kMiB.count}, 2);
  const std::vector<Bytes> held = held_out_sizes(sizes);
  REQUIRE(held.size() == sizes.size() - 1);
  // A fifth and seven tenths of the way, rounded down to 64 bytes: 1024 + 204.8, 2048 + 1433.6.
  CHECK(held[0] == Bytes{1216});
  CHECK(held[1] == Bytes{3456});
  for (std::size_t i = 0; i < held.size(); ++i) {
    CHECK(held[i] > sizes[i]);
    CHECK(held[i] < sizes[i + 1]);
    CHECK(held[i].count % 64 == 0);
  }
  CHECK(held_out_sizes(sizes, 2).size() == 10);
  CHECK(held_out_sizes({{1024}}).empty());
  CHECK(held_out_sizes({{64}, {80}}).empty());  // no room between them

  // Every size that refinement could add, where everything everywhere is far off.
  std::set<Bytes> added;
  std::vector<AgreedPoint> points;
  double us = 1;
  for (const Bytes size : sizes) {
    points.push_back(point_at(size, 0));
    points.back().agreed = Time::from_seconds(us * 1e-6);
    us *= 4;
  }
  const auto steep = [&](Bytes size) {
    added.insert(size);
    AgreedPoint result = point_at(size, 0);
    const auto above = std::ranges::upper_bound(sizes, size);
    const auto at = static_cast<std::size_t>(above - sizes.begin()) - 1;
    const double part =
        static_cast<double>(size.count - sizes[at].count) / static_cast<double>(sizes[at].count);
    result.agreed = Time::from_seconds(points[at].agreed.seconds() * (1 + part * part * 3));
    return result;
  };
  std::vector<AgreedPoint> refined = points;
  refine(refined, steep);
  CHECK(added.size() > sizes.size());
  for (const Bytes size : held) CHECK(added.count(size) == 0);
}

TEST_CASE("where time is a straight line, only the middles are measured") {
  const std::vector<Bytes> sizes = growing_sizes({1024}, {65'536}, 4);  // 11, 14, 26, 74 us
  std::vector<AgreedPoint> points = points_at(sizes, 0);
  std::vector<std::int64_t> measured;
  refine(points, [&](Bytes size) {
    measured.push_back(size.count);
    return point_at(size, 0);
  });
  CHECK(measured == std::vector<std::int64_t>{2560, 10'240, 40'960});
  REQUIRE(points.size() == 7);
  CHECK(std::ranges::is_sorted(points, {}, [](const AgreedPoint& p) { return p.point.bytes; }));
}

TEST_CASE("where nothing changes, nothing is measured") {
  std::vector<AgreedPoint> points = points_at({{64}, {128}, {256}}, 0);
  refine(points, [](Bytes size) -> AgreedPoint {
    FAIL("measured " << size.count);
    return {};
  });
  CHECK(points.size() == 3);
}

TEST_CASE("around a jump sizes get dense, to a sixty-fourth of the way") {
  // From 4096 bytes, 14 us, to 8192, 48 us; the jump of 30 us lies at 5000.
  std::vector<AgreedPoint> points = points_at({{4096}, {8192}}, 30);
  refine(points, [](Bytes size) { return point_at(size, 30); });
  std::vector<Bytes> sizes;
  for (const AgreedPoint& each : points) sizes.push_back(each.point.bytes);
  const auto above = std::ranges::lower_bound(sizes, Bytes{5000});
  REQUIRE(above != sizes.end());
  CHECK(above->count - std::prev(above)->count == 64);
  CHECK(sizes.size() <= 11);
}

}  // namespace
}  // namespace lockstep::runner
