#include "runner/measure/parts_folder.h"

#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::runner {
namespace {

namespace fs = std::filesystem;
using lockstep::testing::spill;
using lockstep::testing::TemporaryFolder;

TEST_CASE("only parts of measurements are removed, and their folder when it is empty then") {
  const TemporaryFolder folder;
  const std::string parts = folder.file("parts");
  remove_own_parts(folder.path().string());  // nothing there
  fs::create_directory(parts);
  for (const char* name :
       {"repeat0-rank0.measurement.json", "repeat0-rank0.runs.json", "repeat10-rank1.runs.json",
        "repeat0-rank0.runs.samples.json", "2-0-1.measurement.json", "2-0-1.runs.json"}) {
    spill(parts + "/" + name, "{}");
  }
  const auto mine = {"thesis.tex", "repeat.txt", "my.runs.json", "1.csv"};
  for (const char* name : mine) spill(parts + "/" + name, "mine");
  fs::create_directories(parts + "/repeat0.runs.json");  // a folder by that name
  remove_own_parts(folder.path().string());
  for (const char* name : mine) CHECK(fs::exists(parts + "/" + name));
  CHECK(std::distance(fs::directory_iterator(parts), {}) == 5);
  for (const char* name : mine) fs::remove(parts + "/" + name);
  fs::remove(parts + "/repeat0.runs.json");
  spill(parts + "/repeat0-rank0.runs.json", "{}");
  remove_own_parts(folder.path().string());
  CHECK_FALSE(fs::exists(parts));
}

TEST_CASE("a link or a file in the place of the parts is left alone and said") {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("elsewhere"));
  spill(folder.file("elsewhere/repeat0-rank0.runs.json"), "{}");
  fs::create_directory_symlink(folder.file("elsewhere"), folder.file("parts"));
  CHECK_THROWS_AS(remove_own_parts(folder.path().string()), InputError);
  CHECK(fs::exists(folder.file("elsewhere/repeat0-rank0.runs.json")));
  fs::remove(folder.file("parts"));
  spill(folder.file("parts"), "mine");
  CHECK_THROWS_AS(remove_own_parts(folder.path().string()), InputError);
}

}  // namespace
}  // namespace lockstep::runner
