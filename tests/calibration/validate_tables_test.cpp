#include "calibration/validate_tables.h"

#include <algorithm>
#include <string>

#include "calibration/check.h"
#include "calibration/validate.h"
#include "calibration/validation_table.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

CollectivePoint at(std::int64_t bytes, std::int64_t ns) {
  CollectivePoint point;
  point.bytes = Bytes{bytes};
  point.p10 = point.p50 = point.p90 = Time::nanoseconds(ns);
  return point;
}

CollectiveTable nccl_table(int workers, std::vector<CollectivePoint> points) {
  CollectiveTable table;
  table.collective = "all_reduce";
  table.backend = "nccl";
  table.workers = workers;
  table.topology = kOneHost;
  table.points = std::move(points);
  return table;
}

Calibration with_tables(std::vector<CollectiveTable> tables) {
  Calibration calibration;
  calibration.id = "visit";
  calibration.collectives = std::move(tables);
  return calibration;
}

TEST_CASE("sizes that were held out are predicted from the table's points") {
  CollectiveTable table = nccl_table(2, {at(1024, 10'000), at(2048, 12'000), at(4096, 15'000)});
  table.held_out = {at(1536, 11'500), at(3072, 13'500), at(3200, 0)};
  table.held_out[0].p10 = Time::nanoseconds(11'000);
  table.held_out[0].p90 = Time::nanoseconds(12'150);
  const auto groups = validate_tables(with_tables({table}));
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].name == "all_reduce_sizes");
  REQUIRE(groups[0].points.size() == 2);  // a time of nothing is none
  const ValidationPoint& point = groups[0].points[0];
  CHECK(point.predicted == us(11));
  CHECK(point.measured == Time::nanoseconds(11'500));
  CHECK(point.error == Approx(11.0 / 11.5 - 1));
  CHECK(point.repeat_spread == Approx(0.1));
  CHECK(point.bytes == Bytes{1536});
  CHECK(point.workers == 2);
  CHECK(point.strategy == "all_reduce");
  CHECK(point.run == "visit/all_reduce-n2, held out");
  CHECK(point.basis == Basis::interpolated);
  CHECK(groups[0].points[1].error == Approx(0).margin(1e-9));
}

TEST_CASE("of a table that holds no size out each is left out in turn") {
  const auto groups = validate_tables(
      with_tables({nccl_table(2, {at(1024, 10'000), at(2048, 12'000), at(4096, 16'000)})}));
  REQUIRE(groups.size() == 1);
  REQUIRE(groups[0].points.size() == 1);  // neither the first nor the last
  CHECK(groups[0].points[0].predicted == us(12));
  CHECK(groups[0].points[0].run == "visit/all_reduce-n2, left out");
}

TEST_CASE("larger numbers of workers are predicted from smaller ones") {
  // 10 us on two, 1 ns a byte: on three and four by the usual law.
  const std::vector<CollectiveTable> tables{nccl_table(2, {at(1000, 11'000), at(5000, 15'000)}),
                                            nccl_table(3, {at(1000, 13'000), at(5000, 19'000)}),
                                            nccl_table(4, {at(1000, 15'000), at(5000, 22'000)})};
  const auto groups = validate_tables(with_tables(tables));
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].name == "all_reduce_from_n2");
  CHECK(groups[0].points.size() == 4);
  CHECK(groups[0].points[0].workers == 3);
  CHECK(groups[0].points[3].predicted.us() == Approx(14.5 + 5 * 1.3));
  CHECK(groups[0].points[3].basis == Basis::extrapolated);
  CHECK(groups[1].name == "all_reduce_from_n3");
  CHECK(groups[1].points.size() == 2);
  CHECK(groups[1].points[0].run == "visit/all_reduce-n4, from n <= 3");
  // Without n = 2 there is nothing to start from, and from n = 3 its own table is enough.
  const auto from_three = validate_tables(with_tables({tables[1], tables[2]}));
  REQUIRE(from_three.size() == 1);
  CHECK(from_three[0].name == "all_reduce_from_n3");
}

TEST_CASE("only NCCL's all-reduce on one host is looked at") {
  CollectiveTable gloo = nccl_table(2, {at(1024, 1), at(2048, 2), at(4096, 4)});
  CollectiveTable broadcast = gloo, hosts = gloo;
  gloo.backend = "gloo";
  broadcast.collective = "broadcast";
  hosts.topology = "2 hosts";
  CHECK(validate_tables(with_tables({gloo, broadcast, hosts})).empty());
  CHECK(validate_tables({}).empty());
}

TEST_CASE("a calibration of at most two workers") {
  Calibration calibration = gpu_calibration();
  CHECK(up_to(calibration, 2).profiles.empty());  // no all-reduce of NCCL
  for (CollectiveTable& table : calibration.collectives) table.backend = "nccl";
  calibration.profiles.push_back(calibration.profiles[0]);
  calibration.profiles.back().beside = 3;
  const Calibration few = up_to(calibration, 2);
  CHECK(few.profiles.size() == calibration.profiles.size() - 1);
  REQUIRE(few.collectives.size() == 2);
  for (const CollectiveTable& table : few.collectives) CHECK(table.workers == 2);
  CHECK(few.copies == calibration.copies);
  CHECK(up_to(calibration, 1).profiles.empty());
}

Run run_on(int workers, Time step) {
  Run run;
  run.id = "run-" + std::to_string(workers);
  run.model = "two_layers";
  run.batch_per_worker = 32;
  run.workers = workers;
  run.strategy.kind = "ddp";
  run.repeats.resize(1);
  run.repeats[0].step.p50 = step;
  return run;
}

TEST_CASE("steps of three workers and more are also predicted from two") {
  Calibration calibration = gpu_calibration();
  for (CollectiveTable& table : calibration.collectives) table.backend = "nccl";
  calibration.noise = {};
  const Validation validation =
      validate(calibration, {run_on(2, us(900)), run_on(3, us(900)), run_on(4, us(900))});
  const auto group = std::ranges::find(validation.groups, "extrapolated_n", &ValidationGroup::name);
  REQUIRE(group != validation.groups.end());
  REQUIRE(group->points.size() == 2);
  CHECK(group->points[0].run == "run-3");
  CHECK(group->points[1].run == "run-4");
  CHECK(group->points[0].basis == Basis::extrapolated);
  CHECK(group->wanted_mean == 0.03);
  CHECK(group->own_question);
  // The same steps from all that was measured, which is the same on four workers as on two.
  const auto own = std::ranges::find(validation.groups, "device_bound", &ValidationGroup::name);
  REQUIRE(own != validation.groups.end());
  CHECK(own->points.size() == 3);
  CHECK(own->points[2].basis == Basis::measured);
  CHECK(own->points[2].predicted < group->points[1].predicted);
  CHECK(own->wanted_mean == 0.02);
  CHECK_FALSE(own->own_question);
}

TEST_CASE("what is wanted of a group is said, and the user's bounds are for the others") {
  CollectiveTable table = nccl_table(2, {at(1024, 10'000), at(4096, 16'000)});
  table.held_out = {at(2048, 13'000)};  // 12 us are predicted: -7.7 %
  const Validation validation = validate(with_tables({table}), {});
  REQUIRE(validation.groups.size() == 1);
  const ValidationGroup& group = validation.groups[0];
  CHECK(group.mean_error == Approx(1.0 / 13));
  CHECK(group.wanted_mean == 0.03);
  CHECK(group.wanted_worst == 0.08);
  CHECK_FALSE(held(group));
  const std::string text = to_table(validation);
  CHECK_THAT(text, Contains("over 1 points; wanted: mean 3 %, worst 8 %: missed"));
  CHECK_THAT(text, Contains("2.00 KiB") || Contains("2.0 KiB") || Contains("2 KiB"));
  CHECK_THAT(text, Contains("held out, interpolated"));
  CHECK_THAT(text, !Contains("--timelines"));
  CHECK(check(validation, {0.01, 0.01, std::nullopt}) ==
        std::vector<std::string>{"no stable point with several workers to check"});
  ValidationGroup right = group;
  right.mean_error = 0.03;
  right.worst_error = 0.08;
  CHECK(held(right));
  right.worst_error = 0.081;
  CHECK_FALSE(held(right));
  CHECK(held(ValidationGroup{"cpu", 9, 9, {}}));  // nothing is wanted of it
}

TEST_CASE("the law holds on the shipped machine of four", "[shipped]") {
  const std::string root = LOCKSTEP_SOURCE_DIR;
  const Validation validation =
      validate(read_calibration(root + "/calibration/data/h100x4-2026-11-28/calibration.json"), {});
  REQUIRE(validation.groups.size() == 3);
  CHECK(validation.groups[0].name == "all_reduce_from_n2");
  CHECK(held(validation.groups[0]));
  CHECK(validation.groups[1].name == "all_reduce_from_n3");
  CHECK(validation.groups[1].mean_error < 0.06);
  CHECK(validation.groups[2].name == "all_reduce_sizes");
  CHECK(validation.groups[2].mean_error < 0.04);
}

}  // namespace
}  // namespace lockstep
