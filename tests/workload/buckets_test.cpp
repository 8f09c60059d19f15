#include "sim/workload/buckets.h"

#include <array>
#include <cstdint>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

constexpr std::int64_t kFloat = 4;

/// Element counts of parameters in the order in which their gradients get ready: the reverse of
/// forward, a convolution's weight before its bias, a linear layer's bias before its weight.
class ReadyOrder {
 public:
  void linear(std::int64_t in, std::int64_t out) { prepend({out, in * out}); }
  void convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, bool bias = false) {
    if (bias) {
      prepend({in * out * kernel * kernel, out});
    } else {
      prepend({in * out * kernel * kernel});
    }
  }
  void norm(std::int64_t channels) { prepend({channels, channels}); }

  std::vector<Gradient> gradients() const {
    std::vector<Gradient> all;
    for (std::int64_t count : counts_) all.push_back({Bytes{count * kFloat}, kFloat});
    return all;
  }

 private:
  void prepend(std::vector<std::int64_t> layer) {
    counts_.insert(counts_.begin(), layer.begin(), layer.end());
  }
  std::vector<std::int64_t> counts_;
};

ReadyOrder resnet18_cifar() {
  ReadyOrder model;
  model.convolution(3, 64, 3);
  model.norm(64);
  std::int64_t in = 64;
  for (std::int64_t out : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      model.convolution(in, out, 3);
      model.norm(out);
      model.convolution(out, out, 3);
      model.norm(out);
      if (in != out) {
        // The shortcut joins at the addition: its gradients get ready between those of the block's
        // two convolutions or after them; both orders fall into one bucket here.
        model.convolution(in, out, 1);
        model.norm(out);
      }
      in = out;
    }
  }
  model.linear(512, 10);
  return model;
}

ReadyOrder resnet50() {
  ReadyOrder model;
  model.convolution(3, 64, 7);
  model.norm(64);
  constexpr std::array<int, 4> kBlocks{3, 4, 6, 3};
  std::int64_t in = 64;
  std::int64_t width = 64;
  for (int blocks : kBlocks) {
    for (int block = 0; block < blocks; ++block) {
      model.convolution(in, width, 1);
      model.norm(width);
      model.convolution(width, width, 3);
      model.norm(width);
      model.convolution(width, 4 * width, 1);
      model.norm(4 * width);
      if (block == 0) {
        model.convolution(in, 4 * width, 1);
        model.norm(4 * width);
      }
      in = 4 * width;
    }
    width *= 2;
  }
  model.linear(2048, 1000);
  return model;
}

ReadyOrder vgg11_cifar() {
  ReadyOrder model;
  std::int64_t in = 3;
  for (std::int64_t out : {64, 128, 256, 256, 512, 512, 512, 512}) {
    model.convolution(in, out, 3, true);
    model.norm(out);
    in = out;
  }
  model.linear(512, 10);
  return model;
}

std::vector<std::int64_t> floats(const std::vector<Gradient>& gradients,
                                 const std::vector<Bucket>& buckets) {
  std::vector<std::int64_t> sizes;
  for (const Bucket& bucket : buckets) {
    std::int64_t bytes = 0;
    for (int i : bucket) bytes += gradients[static_cast<std::size_t>(i)].bytes.count;
    sizes.push_back(bytes / kFloat);
  }
  return sizes;
}

std::vector<std::int64_t> ddp_buckets(const ReadyOrder& model) {
  constexpr std::array kCaps{Bytes{1 << 20}, Bytes{25 << 20}};
  const std::vector<Gradient> gradients = model.gradients();
  return floats(gradients, assign_buckets(gradients, kCaps));
}

using Sizes = std::vector<std::int64_t>;

TEST_CASE("buckets of real models are those of PyTorch's traces", "[buckets]") {
  CHECK(ddp_buckets(resnet18_cifar()) == Sizes{2'365'450, 6'623'744, 2'184'768});
  CHECK(ddp_buckets(resnet50()) == Sizes{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040});
  CHECK(ddp_buckets(vgg11_cifar()) == Sizes{2'365'450, 6'789'376, 76'288});
}

TEST_CASE("without a cap one bucket holds everything", "[buckets]") {
  const std::vector<Gradient> gradients = resnet18_cifar().gradients();
  const std::array caps{kNoCap};
  CHECK(floats(gradients, assign_buckets(gradients, caps)) == Sizes{11'173'962});
}

TEST_CASE("a bucket closes when it reaches its cap, and the last cap repeats", "[buckets]") {
  // Caps 4, 8: [3, 1] reaches 4; [7, 1] reaches 8; [100] exceeds it; [2] is left over.
  const std::vector<Gradient> gradients{{{3}}, {{1}}, {{7}}, {{1}}, {{100}}, {{2}}};
  const std::array caps{Bytes{4}, Bytes{8}};
  CHECK(assign_buckets(gradients, caps) == std::vector<Bucket>{{0, 1}, {2, 3}, {4}, {5}});
}

TEST_CASE("types never mix, and each goes through the caps on its own", "[buckets]") {
  // Type 4 closes {0} at cap 4, then {2, 4} at cap 8; type 2 closes {1, 3} at cap 4; {5} and {6}
  // are left, in the order of their first gradients.
  const std::vector<Gradient> gradients{{{4}, 4}, {{2}, 2}, {{4}, 4}, {{2}, 2},
                                        {{4}, 4}, {{2}, 2}, {{4}, 4}};
  const std::array caps{Bytes{4}, Bytes{8}};
  CHECK(assign_buckets(gradients, caps) == std::vector<Bucket>{{0}, {1, 3}, {2, 4}, {5}, {6}});
}

TEST_CASE("no gradients, no buckets", "[buckets]") {
  const std::array caps{kNoCap};
  CHECK(assign_buckets({}, caps).empty());
  CHECK(take_chunks({}, kChunkLimit).empty());
}

TEST_CASE("a chunk closes before it would exceed its limit, except alone", "[buckets]") {
  // Limit 8: [3, 5] fills it; [1] would become 12 with the next; [11] exceeds it alone; [2] is
  // left.
  const std::vector<Gradient> gradients{{{3}}, {{5}}, {{1}}, {{11}}, {{2}}};
  CHECK(take_chunks(gradients, Bytes{8}) == std::vector<Bucket>{{0, 1}, {2}, {3}, {4}});
}

TEST_CASE("chunks hold one type each", "[buckets]") {
  // Limit 8: type 4 closes {0} before 2; type 2 holds 1 and 3 up to the end, and comes second
  // because its first gradient does.
  const std::vector<Gradient> gradients{{{8}, 4}, {{2}, 2}, {{4}, 4}, {{2}, 2}};
  CHECK(take_chunks(gradients, Bytes{8}) == std::vector<Bucket>{{0}, {2}, {1, 3}});
}

}  // namespace
}  // namespace lockstep
