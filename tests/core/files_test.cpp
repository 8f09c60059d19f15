#include "sim/core/files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// An empty folder, gone with the object.
struct TemporaryFolder {
  fs::path path;
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-files-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

TEST_CASE("a file is read as it was written") {
  const TemporaryFolder folder;
  const std::string file = (folder.path / "a.json").string();
  std::string content = "line\n";
  content.push_back('\0');
  content += std::string(200'000, 'x');
  write_file(file, content);
  CHECK(read_file(file) == content);
  write_file(file, "");
  CHECK(read_file(file).empty());
  CHECK(folder.entries() == 1);  // no temporary is left
}

TEST_CASE("what cannot be read is named") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_file((folder.path / "none").string()),
                    Contains("none: cannot be read (No such file"));
  CHECK_THROWS_WITH(read_file(folder.path.string()), Contains("is a folder"));
  CHECK_THROWS_AS(read_file("/nowhere/at/all"), InputError);
}

TEST_CASE("a failed write leaves the older file and nothing else") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(write_file((folder.path / "none" / "a").string(), "x"), InputError);
  // Renaming a file over a folder fails, after the temporary has been written.
  const fs::path target = folder.path / "folder";
  fs::create_directory(target);
  CHECK_THROWS_AS(write_file(target.string(), "x"), RunError);
  CHECK(fs::is_directory(target));
  CHECK(folder.entries() == 1);
}

TEST_CASE("where the system allows no file, the path is named") {
  CHECK_THROWS_WITH(write_file("/proc/lockstep", "x"), Contains("/proc/lockstep: cannot be"));
}

}  // namespace
}  // namespace lockstep
