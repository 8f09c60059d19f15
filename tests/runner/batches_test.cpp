#include "runner/measure/batches.h"

#include "tests/catch.h"

namespace lockstep::runner {
namespace {

/// The batches that are tried where memory holds `room` samples.
std::vector<int> tried(Batches batches, int room) {
  std::vector<int> result;
  while (const auto batch = batches.next()) {
    result.push_back(*batch);
    if (*batch > room) batches.did_not_fit();
  }
  return result;
}

}  // namespace

TEST_CASE("A list of batches goes on behind one that does not fit") {
  CHECK(tried(Batches({8, 4096, 16, 512}), 100) == std::vector<int>{8, 4096, 16, 512});
  CHECK(tried(Batches(std::vector<int>{}), 100).empty());
}

TEST_CASE("A search goes on by fours from 32 and ends on the first batch that does not fit") {
  CHECK(tried(Batches::until_full(), 600) == std::vector<int>{32, 128, 512, 2048});
  CHECK(tried(Batches::until_full(), 10) == std::vector<int>{32});
  CHECK(tried(Batches::until_full(), 2048) == std::vector<int>{32, 128, 512, 2048, 8192});
  const std::vector<int> all = tried(Batches::until_full(), 1 << 30);
  CHECK(all.back() <= kLargestBatch);
  CHECK(all.back() > kLargestBatch / kSearchFactor);
}

}  // namespace lockstep::runner
