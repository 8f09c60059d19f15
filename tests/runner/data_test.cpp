#include <ATen/ops/full.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runner/data/cifar10.h"
#include "runner/data/loader.h"
#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::runner {
namespace {

using testing::TemporaryFolder;

constexpr std::int64_t kRecord = 3073, kFileBytes = 30'730'000;

/// Black images of class 0, the holes of a sparse file.
void make_files(const TemporaryFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    const std::string file = folder.file("data_batch_" + std::to_string(i) + ".bin");
    testing::spill(file, "");
    std::filesystem::resize_file(file, kFileBytes);
  }
}

void patch(const std::string& file, std::int64_t at, const std::string& bytes) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(at);
  out << bytes;
}

std::string message(const std::string& folder) {
  try {
    read_cifar10(folder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("CIFAR-10's binary files are read record by record") {
  const TemporaryFolder folder;
  make_files(folder);
  // Record 2 of file 3 is sample 20,002: class 7, the first red pixel 255, the last blue one 51.
  const std::string file = folder.file("data_batch_3.bin");
  patch(file, 2 * kRecord, "\x07\xff");
  patch(file, 3 * kRecord - 1, "\x33");
  const LabelledImages read = read_cifar10(folder.path().string());
  CHECK(read.images.sizes == std::vector<int>{50'000, 3, 32, 32});
  REQUIRE(read.labels.data.size() == 50'000);
  CHECK(read.labels.data[20'002] == 7);
  CHECK(read.labels.data[20'001] == 0);
  CHECK(read.images.data[20'002 * 3072] == 255);
  CHECK(read.images.data[20'003 * 3072 - 1] == 51);

  const Dataset dataset = read_dataset("cifar10", folder.path().string());
  const std::vector<std::int64_t> indices{20'002, 0};
  const Batch batch = make_batch(dataset, indices);
  REQUIRE(batch.input.sizes() == at::IntArrayRef{2, 3, 32, 32});
  CHECK(batch.target.const_data_ptr<std::int64_t>()[0] == 7);
  const float* pixels = batch.input.const_data_ptr<float>();
  // (1 - 0.4914) / 0.2470, (0 - 0.4914) / 0.2470, (51/255 - 0.4465) / 0.2616
  CHECK(pixels[0] == Approx(2.05911));
  CHECK(pixels[1] == Approx(-1.98947));
  CHECK(pixels[3071] == Approx(-0.94228).epsilon(1e-4));
}

TEST_CASE("Files of CIFAR-10 that are not what they should be are refused") {
  const TemporaryFolder folder;
  CHECK_THAT(message(folder.path().string()), Contains("data_batch_1.bin"));
  make_files(folder);
  SECTION("short") {
    std::filesystem::resize_file(folder.file("data_batch_2.bin"), kFileBytes - 1);
    CHECK_THAT(message(folder.path().string()), Contains("has 30729999 bytes, not 30730000"));
  }
  SECTION("a class too high") {
    patch(folder.file("data_batch_5.bin"), 9'999 * kRecord, "\x0a");
    CHECK_THAT(message(folder.path().string()), Contains("label 10 in record 9999"));
  }
  SECTION("missing") {
    std::filesystem::remove(folder.file("data_batch_4.bin"));
    CHECK_THAT(message(folder.path().string()), Contains("data_batch_4.bin"));
  }
  SECTION("a folder") {
    std::filesystem::remove(folder.file("data_batch_4.bin"));
    std::filesystem::create_directory(folder.file("data_batch_4.bin"));
    CHECK_THAT(message(folder.path().string()), Contains("data_batch_4.bin"));
  }
}

TEST_CASE("Workers share an epoch: no sample twice") {
  std::set<std::int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    Sampler sampler(20, 2, {.rank = rank, .workers = 3});
    for (int step = 0; step < 3; ++step) {  // 18 of 20 samples; two are dropped
      for (const std::int64_t index : sampler.next()) {
        CHECK(index < 20);
        CHECK(seen.insert(index).second);
      }
    }
  }
  CHECK(seen.size() == 18);
}

TEST_CASE("Batches that are loaded ahead come in the order of those that are not") {
  std::int64_t next = 0;
  Prefetch prefetch(
      3, [&next] { return std::vector<std::int64_t>{next++}; },
      [](const std::vector<std::int64_t>& chosen) {
        return Batch{.input = {}, .target = at::full({1}, chosen.front(), at::kLong)};
      });
  for (std::int64_t i = 0; i < 50; ++i) {
    CHECK(prefetch.next().target.const_data_ptr<std::int64_t>()[0] == i);
  }
}

}  // namespace lockstep::runner
