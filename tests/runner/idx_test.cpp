#include "runner/data/idx.h"

#include <zlib.h>

#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::runner {
namespace {

using testing::spill;
using testing::TemporaryFolder;

std::string header(std::initializer_list<std::uint32_t> sizes) {
  std::string text{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) text.push_back(static_cast<char>(size >> shift));
  }
  return text;
}

void spill_gzip(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

}  // namespace

TEST_CASE("An IDX file gives its sizes and bytes, packed or not") {
  const TemporaryFolder folder;
  const std::string content = header({2, 1, 3}) + "abcdef";
  spill(folder.file("plain"), content);
  spill_gzip(folder.file("packed.gz"), content);
  for (const char* name : {"plain", "packed.gz"}) {
    const IdxArray array = read_idx(folder.file(name), 3);
    CHECK(array.sizes == std::vector<int>{2, 1, 3});
    CHECK(std::string(array.data.begin(), array.data.end()) == "abcdef");
  }
}

TEST_CASE("A bad IDX file is refused by what is wrong with it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("images");
  const auto refuses = [&file](const std::string& reason) {
    CHECK_THROWS_WITH(read_idx(file, 1), Contains(file) && Contains(reason));
    CHECK_THROWS_AS(read_idx(file, 1), InputError);
  };
  refuses("is missing");
  spill(file, "");
  refuses("is truncated");
  spill(file, header({4}).substr(0, 6));
  refuses("is truncated");
  spill(file, header({4}) + "abc");
  refuses("truncated: 3 of 4 bytes");
  spill(file, header({4}) + "abcde");
  refuses("longer than its header says");
  spill(file, header({4, 1}) + "abcd");
  refuses("not an IDX file of bytes with 1 dimensions");
  spill(file, header({0}));
  refuses("impossible size of 0");
  spill(file, header({0xffffffffU}));
  refuses("impossible size of 4294967295");
}

TEST_CASE("Damaged gzip data is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.file("labels.gz");
  spill_gzip(file, header({2000}) + std::string(2000, 'x'));
  std::string bytes = testing::slurp(file);
  SECTION("cut off") {
    spill(file, bytes.substr(0, bytes.size() / 2));
    CHECK_THROWS_AS(read_idx(file, 1), InputError);
  }
  SECTION("changed in the checksum") {
    bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 0x40);
    spill(file, bytes);
    CHECK_THROWS_WITH(read_idx(file, 1), Contains("damaged"));
  }
}

TEST_CASE("Fashion-MNIST must be images of 28x28 with a class each") {
  const TemporaryFolder folder;
  const std::string images = folder.file("train-images-idx3-ubyte.gz");
  const std::string labels = folder.file("train-labels-idx1-ubyte.gz");
  spill_gzip(images, header({2, 28, 28}) + std::string(2 * 28 * 28, 'p'));
  SECTION("as it should be") {
    spill_gzip(labels, header({2}) + std::string{'\x03', '\x09'});
    const LabelledImages read = read_fashion_mnist(folder.path().string());
    CHECK(read.images.sizes[0] == 2);
    CHECK(read.labels.data == std::vector<std::uint8_t>{3, 9});
  }
  SECTION("a class too high") {
    spill_gzip(labels, header({2}) + std::string{'\x03', '\x0a'});
    CHECK_THROWS_WITH(read_fashion_mnist(folder.path().string()), Contains("label 10"));
  }
  SECTION("labels missing") {
    spill_gzip(labels, header({1}) + std::string{'\x03'});
    CHECK_THROWS_WITH(read_fashion_mnist(folder.path().string()),
                      Contains("1 labels for 2 images"));
  }
  SECTION("another size") {
    spill_gzip(images, header({2, 32, 32}) + std::string(2 * 32 * 32, 'p'));
    spill_gzip(labels, header({2}) + std::string{'\x03', '\x09'});
    CHECK_THROWS_WITH(read_fashion_mnist(folder.path().string()), Contains("32x32"));
  }
}

}  // namespace lockstep::runner
