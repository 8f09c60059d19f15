#include "runner/data/cifar10.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "runner/data/bad_file.h"

namespace lockstep::runner {

namespace {

constexpr int kFiles = 5, kRecords = 10'000;
constexpr int kImage = 3 * 32 * 32;
constexpr std::int64_t kFileBytes = std::int64_t{kRecords} * (1 + kImage);

void append(const std::string& file, LabelledImages& all) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  if (error) {
    reject_file(
        file, error.message(),
        "the folder holds data_batch_1.bin to data_batch_5.bin of CIFAR-10's binary version");
  }
  if (size != kFileBytes) reject_file(file, fmt::format("has {} bytes, not {}", size, kFileBytes));
  std::ifstream in(file, std::ios::binary);
  std::vector<char> record(1 + kImage);
  for (int i = 0; i < kRecords; ++i) {
    if (!in.read(record.data(), static_cast<std::streamsize>(record.size()))) {
      reject_file(file, "cannot be read");
    }
    const auto label = static_cast<std::uint8_t>(record.front());
    if (label > 9) {
      reject_file(file,
                  fmt::format("holds the label {} in record {}; classes are 0 to 9", label, i));
    }
    all.labels.data.push_back(label);
    all.images.data.insert(all.images.data.end(), record.begin() + 1, record.end());
  }
}

}  // namespace

LabelledImages read_cifar10(const std::string& directory) {
  LabelledImages all;
  all.images.data.reserve(static_cast<std::size_t>(kFiles * kFileBytes));
  for (int i = 1; i <= kFiles; ++i) append(fmt::format("{}/data_batch_{}.bin", directory, i), all);
  all.images.sizes = {kFiles * kRecords, 3, 32, 32};
  all.labels.sizes = {kFiles * kRecords};
  return all;
}

}  // namespace lockstep::runner
