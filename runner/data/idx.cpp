#include "runner/data/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "runner/data/bad_file.h"

namespace lockstep::runner {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;  // bytes of data; a sane file has less

/// zlib's reader takes plain files as they are.
class GzipFile {
 public:
  explicit GzipFile(const std::string& file) : name_(file), file_(gzopen(file.c_str(), "rb")) {
    if (!file_) reject_file(file, "cannot be opened");
  }
  /// Up to that many bytes.
  std::size_t read(std::uint8_t* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const auto piece = static_cast<unsigned>(std::min<std::size_t>(count - done, 1 << 24));
      const int got = gzread(file_.get(), to + done, piece);
      if (got < 0) reject_file(name_, "is damaged: its gzip data cannot be unpacked");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  bool intact() {
    int error = Z_OK;
    gzerror(file_.get(), &error);
    return error == Z_OK || error == Z_STREAM_END;
  }

 private:
  std::string name_;
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

}  // namespace

IdxArray read_idx(const std::string& file, std::size_t dimensions) {
  constexpr std::uint8_t kUnsignedBytes = 0x08;
  if (!std::filesystem::exists(file)) {
    reject_file(file, "is missing",
                "apt install dataset-fashion-mnist, or name the folder of the files");
  }
  if (std::filesystem::is_directory(file)) reject_file(file, "is a folder");
  GzipFile input(file);
  std::vector<std::uint8_t> header(4 + 4 * dimensions);
  if (input.read(header.data(), header.size()) < header.size()) reject_file(file, "is truncated");
  if (header[0] != 0 || header[1] != 0 || header[2] != kUnsignedBytes || header[3] != dimensions) {
    reject_file(file, fmt::format("is not an IDX file of bytes with {} dimensions", dimensions));
  }
  IdxArray array;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::uint32_t size = big_endian(&header[4 + 4 * i]);
    count *= std::min<std::int64_t>(size, kLargest + 1);
    if (count == 0 || count > kLargest) {
      reject_file(file, fmt::format("has an impossible size of {}", size));
    }
    array.sizes.push_back(static_cast<int>(size));
  }
  array.data.resize(static_cast<std::size_t>(count));
  const std::size_t got = input.read(array.data.data(), array.data.size());
  if (got < array.data.size()) {
    reject_file(file, fmt::format("is truncated: {} of {} bytes", got, array.data.size()));
  }
  std::uint8_t extra = 0;
  if (input.read(&extra, 1) > 0) reject_file(file, "is longer than its header says");
  if (!input.intact()) reject_file(file, "is damaged: its gzip checksum does not hold");
  return array;
}

LabelledImages read_fashion_mnist(const std::string& directory) {
  const std::string folder = directory.empty() ? kFashionMnistDirectory : directory;
  const std::string image_file = folder + "/train-images-idx3-ubyte.gz";
  const std::string label_file = folder + "/train-labels-idx1-ubyte.gz";
  LabelledImages read{.images = read_idx(image_file, 3), .labels = read_idx(label_file, 1)};
  if (read.images.sizes[1] != 28 || read.images.sizes[2] != 28) {
    reject_file(image_file, fmt::format("holds images of {}x{}, not 28x28", read.images.sizes[1],
                                        read.images.sizes[2]));
  }
  if (read.images.sizes[0] != read.labels.sizes[0]) {
    reject_file(label_file, fmt::format("holds {} labels for {} images", read.labels.sizes[0],
                                        read.images.sizes[0]));
  }
  const std::uint8_t largest = std::ranges::max(read.labels.data);
  if (largest > 9)
    reject_file(label_file, fmt::format("holds the label {}; classes are 0 to 9", largest));
  return read;
}

}  // namespace lockstep::runner
