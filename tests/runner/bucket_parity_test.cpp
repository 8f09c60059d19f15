// The runner and the simulator share assign_buckets; here it meets LibTorch's own assignment.
#include <ATen/ops/empty.h>

#include <torch/csrc/utils/tensor_flatten.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "sim/workload/buckets.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

struct Model {
  std::vector<at::Tensor> tensors;
  std::vector<Gradient> gradients;
};

Model random_model(std::mt19937& random, bool mixed_types) {
  Model model;
  const int parameters = std::uniform_int_distribution(1, 120)(random);
  for (int i = 0; i < parameters; ++i) {
    const auto count = std::uniform_int_distribution<std::int64_t>(1, 4000)(random);
    const bool half = mixed_types && std::uniform_int_distribution(0, 2)(random) == 0;
    model.tensors.push_back(at::empty({count}, half ? at::kHalf : at::kFloat));
    model.gradients.push_back({Bytes{count * (half ? 2 : 4)}, half ? 2 : 4});
  }
  return model;
}

std::vector<Bytes> random_caps(std::mt19937& random) {
  std::vector<Bytes> caps;
  const int count = std::uniform_int_distribution(1, 3)(random);
  for (int i = 0; i < count; ++i) {
    caps.push_back({std::uniform_int_distribution<std::int64_t>(1, 60'000)(random)});
  }
  return caps;
}

std::vector<Bucket> libtorch_buckets(const Model& model, const std::vector<Bytes>& caps,
                                     bool ready_order) {
  std::vector<std::size_t> limits;
  for (Bytes cap : caps) limits.push_back(static_cast<std::size_t>(cap.count));
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; ready_order && i < model.tensors.size(); ++i) {
    order.push_back(static_cast<std::int64_t>(i));
  }
  const auto [buckets, sizes] =
      c10d::compute_bucket_assignment_by_size(model.tensors, limits, {}, order);
  std::vector<Bucket> result;
  for (const auto& bucket : buckets) result.emplace_back(bucket.begin(), bucket.end());
  return result;
}

TEST_CASE("one type in ready order: the lists are LibTorch's", "[buckets]") {
  std::mt19937 random(20240607);
  for (int round = 0; round < 500; ++round) {
    const Model model = random_model(random, false);
    const std::vector<Bytes> caps = random_caps(random);
    REQUIRE(assign_buckets(model.gradients, caps) == libtorch_buckets(model, caps, true));
  }
}

TEST_CASE("mixed types: the buckets are LibTorch's, which sorts them by their first tensor",
          "[buckets]") {
  std::mt19937 random(20240608);
  for (int round = 0; round < 500; ++round) {
    const Model model = random_model(random, true);
    const std::vector<Bytes> caps = random_caps(random);
    std::vector<Bucket> ours = assign_buckets(model.gradients, caps);
    std::ranges::sort(ours, {}, [](const Bucket& bucket) { return bucket.front(); });
    REQUIRE(ours == libtorch_buckets(model, caps, false));
  }
}

TEST_CASE("parameters are broadcast in LibTorch's chunks", "[buckets]") {
  std::mt19937 random(20240609);
  for (int round = 0; round < 200; ++round) {
    const Model model = random_model(random, false);
    const auto limit = std::uniform_int_distribution<std::int64_t>(1, 60'000)(random);
    std::vector<Bucket> expected;
    int next = 0;  // one type: tensors stay in their order
    for (const auto& group :
         torch::utils::take_tensors(model.tensors, static_cast<std::size_t>(limit))) {
      Bucket& bucket = expected.emplace_back();
      for (const at::Tensor& tensor : group.tensors) {
        REQUIRE(tensor.is_same(model.tensors[static_cast<std::size_t>(next)]));
        bucket.push_back(next++);
      }
    }
    REQUIRE(assign_buckets(model.gradients, std::array{Bytes{limit}}) == expected);
  }
}

}  // namespace
}  // namespace lockstep
