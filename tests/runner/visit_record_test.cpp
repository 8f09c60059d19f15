#include "runner/measure/visit_record.h"

#include "sim/core/error.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::runner {
namespace {

using testing::slurp;
using testing::spill;
using testing::TemporaryFolder;

Time ms(std::int64_t value) {
  return Time::milliseconds(value);
}

/// Two repeats of two pieces; the first and one of the second are done.
VisitRecord half_done() {
  VisitRecord record;
  record.id = "visit-1";
  record.date = "2026-11-28T04:00:00Z";
  record.settings = {{"batches", "16,32"}, {"models", "vgg11"}};
  record.repeats = 2;
  record.start = ms(900);
  record.spent = ms(5000);
  record.pieces = {{"machine", ms(100), ms(100)}, {"vgg11-b16", ms(200), ms(700)}};
  record.done = {{0, "machine", ms(140)}, {0, "vgg11-b16", ms(650)}, {1, "machine", ms(120)}};
  return record;
}

TEST_CASE("The record of a visit comes back as it was written, and nothing else is taken") {
  const TemporaryFolder folder;
  const std::string file = folder.file("visit.json");
  write_visit(half_done(), file);
  CHECK(read_visit(file) == half_done());
  std::string text = slurp(file);
  spill(file, text.substr(0, text.size() / 2));
  CHECK_THROWS_AS(read_visit(file), InputError);
  text.replace(text.find("\"repeats\""), 9, "\"repeated\"");
  spill(file, text);
  CHECK_THROWS_WITH(read_visit(file), Contains("repeat"));
}

TEST_CASE("What is still to do is what was not done, with the starts of workers between") {
  const VisitRecord record = half_done();
  CHECK(record.has_all(0));
  CHECK_FALSE(record.has_all(1));
  const auto rest = still_to_do(record, 1);
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].name == "vgg11-b16");
  VisitRecord fresh = record;
  fresh.done.clear();
  // machine, vgg11; start, machine, vgg11: 100 + 700 + 900 + 100 + 700.
  CHECK(sum_full(still_to_do(fresh, 0)) == ms(2500));
  CHECK_FALSE(fresh.has_all(0));
  fresh.pieces.clear();
  CHECK_FALSE(fresh.has_all(0));
}

TEST_CASE("What was measured replaces what was estimated") {
  const auto pieces = as_measured(half_done());
  CHECK(pieces[0].full == ms(140));  // the upper middle of 120 and 140
  CHECK(pieces[1].full == ms(650));
  CHECK(pieces[1].least == ms(200));
}

TEST_CASE("Flags that differ are named with both values") {
  const std::map<std::string, std::string> before{{"batches", "16"}, {"seed", "1"}};
  CHECK(difference(before, before).empty());
  CHECK(difference(before, {{"batches", "16,32"}, {"seed", "1"}}) ==
        "--batches was \"16\" and is \"16,32\"");
  CHECK(difference(before, {{"batches", "16"}}) == "--seed was \"1\" and is \"\"");
  CHECK(difference(before, {{"batches", "16"}, {"budget", "2min"}, {"seed", "1"}}) ==
        "--budget was \"\" and is \"2min\"");
}

}  // namespace
}  // namespace lockstep::runner
