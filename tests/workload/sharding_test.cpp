#include "sim/workload/sharding.h"

#include <random>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

using Shards = std::vector<std::vector<int>>;

TEST_CASE("the largest parameter goes first, each to the emptiest server", "[sharding]") {
  // 9 -> s0; 7 -> s1; 5 -> s1 (9, 12); 4 -> s0 (13); 4 -> s1 (16); 1 -> s0 (14).
  const std::vector<Bytes> sizes{{4}, {9}, {1}, {7}, {4}, {5}};
  const Shards two = shard_parameters(sizes, 2);
  CHECK(two == Shards{{0, 1, 2}, {3, 4, 5}});
  CHECK(shard_bytes(sizes, two) == std::vector<Bytes>{{14}, {16}});
  CHECK(shard_parameters(sizes, 1) == Shards{{0, 1, 2, 3, 4, 5}});
  CHECK(shard_parameters(sizes, 6) == Shards{{1}, {3}, {5}, {0}, {4}, {2}});
}

TEST_CASE("every server gets something, parameters without bytes included", "[sharding]") {
  CHECK(shard_parameters(std::vector<Bytes>{{0}, {0}, {8}}, 3) == Shards{{2}, {0}, {1}});
}

TEST_CASE("each parameter is on one server, and loads differ by at most the largest",
          "[sharding]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Bytes> sizes(1 + random() % 40);
    Bytes largest;
    for (Bytes& size : sizes) {
      size = {static_cast<std::int64_t>(1 + random() % 1000)};
      largest = std::max(largest, size);
    }
    const int servers = 1 + static_cast<int>(random() % sizes.size());
    const Shards shards = shard_parameters(sizes, servers);
    std::vector<int> seen(sizes.size(), 0);
    for (const auto& shard : shards) {
      CHECK_FALSE(shard.empty());
      for (const int index : shard) ++seen[static_cast<std::size_t>(index)];
    }
    CHECK(std::ranges::count(seen, 1) == std::ssize(sizes));
    const auto [least, most] = std::ranges::minmax(shard_bytes(sizes, shards));
    CHECK(most - least <= largest);
  }
}

TEST_CASE("more servers than parameters, or none, are refused", "[sharding]") {
  const std::vector<Bytes> sizes{{4}, {4}};
  CHECK_THROWS_WITH(shard_parameters(sizes, 3), Contains("3 servers cannot share 2 parameters"));
  CHECK_THROWS_AS(shard_parameters(sizes, 0), InputError);
  CHECK_THROWS_AS(shard_parameters(sizes, -1), InputError);
}

}  // namespace
}  // namespace lockstep
