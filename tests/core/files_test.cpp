#include "sim/core/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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

TEST_CASE("a pipe is neither read nor replaced") {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_file(pipe), Contains("pipe: is a pipe or a device"));
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write_file(pipe, "through");
  char got[16] = {};
  CHECK(::read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("a link stays a link, and what it leads to is written") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path / "there");
  const auto at = [&](const char* name) { return (folder.path / name).string(); };
  fs::create_symlink("there/new", at("second"));  // relative to its folder; leads to nothing yet
  fs::create_symlink(at("second"), at("first"));
  for (const char* content : {"one", "two"}) {
    write_file(at("first"), content);
    CHECK(fs::is_symlink(at("first")));
    CHECK(fs::is_symlink(at("second")));
    CHECK(read_file(at("there/new")) == content);
  }
  fs::create_symlink("round", at("round"));
  CHECK_THROWS_WITH(write_file(at("round"), "x"), Contains("leads round"));
  CHECK_THROWS_AS(read_file(at("round")), InputError);
  CHECK_THROWS_AS(read_file(at(std::string(5000, 'x').c_str())), InputError);
}

TEST_CASE("an open file is written to where it stands") {
  const TemporaryFolder folder;
  const std::string file = (folder.path / "log").string();
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  write_file(name, "one ");
  write_file(name, "two");
  ::close(fd);
  CHECK(read_file(file) == "one two");
}

TEST_CASE("a program that is ended while it writes leaves no temporary file") {
  const TemporaryFolder folder;
  const std::string file = (folder.path / "a").string();
  const std::string content(1 << 20, 'x');
  for (int i = 0; i < 10; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGTERM, SIG_DFL);  // Catch2 has its own
      for (;;) write_file(file, content);
    }
    while (!fs::exists(file)) ::usleep(100);
    ::kill(child, SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(folder.entries() == 1);
    CHECK(read_file(file) == content);
    fs::remove(file);
  }
}

TEST_CASE("where the system allows no file, the path is named") {
  CHECK_THROWS_WITH(write_file("/proc/lockstep", "x"), Contains("/proc/lockstep: cannot be"));
}

}  // namespace
}  // namespace lockstep
