#include <filesystem>

#include "tests/catch.h"
#include "tests/records/random_records.h"
#include "tests/records/temporary_folder.h"

using namespace lockstep;
using lockstep::testing::RandomRecords;
using lockstep::testing::slurp;
using lockstep::testing::spill;
using lockstep::testing::TemporaryFolder;

namespace {

constexpr unsigned kSeeds = 60;

template <class Make, class Write, class Read>
void round_trip(Make make, Write write, Read read) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    INFO("seed " << seed);
    RandomRecords random(seed);
    const auto record = make(random);
    write(record, folder.file("a.json"));
    const auto again = read(folder.file("a.json"));
    CHECK(again == record);
    write(again, folder.file("b.json"));
    CHECK(slurp(folder.file("b.json")).size() == slurp(folder.file("a.json")).size());
  }
}

}  // namespace

TEST_CASE("a measurement survives writing and reading") {
  round_trip([](auto& random) { return random.measurement(); }, write_measurement,
             read_measurement);
}

TEST_CASE("a calibration survives writing and reading") {
  round_trip([](auto& random) { return random.calibration(); }, write_calibration,
             read_calibration);
}

TEST_CASE("a run with its samples survives writing and reading") {
  const auto write = [](const Run& run, const std::string& file) {
    std::filesystem::remove(file.substr(0, file.size() - 5) + ".samples.json");
    write_run(run, file);
  };
  round_trip([](auto& random) { return random.run(); }, write, read_run);
}

TEST_CASE("runs with their samples survive writing and reading") {
  const auto make = [](auto& random) {
    return random.template list<Run>([&] { return random.run(); });
  };
  const auto write = [](const std::vector<Run>& runs, const std::string& file) {
    std::filesystem::remove(file.substr(0, file.size() - 5) + ".samples.json");
    write_runs(runs, file);
  };
  round_trip(make, write, read_runs);
}

TEST_CASE("a prediction survives writing and reading") {
  round_trip([](auto& random) { return random.prediction(); }, write_result, read_result);
}

TEST_CASE("a validation survives writing and reading") {
  round_trip([](auto& random) { return random.validation(); }, write_validation, read_validation);
}

TEST_CASE("a run can be read without its samples") {
  const TemporaryFolder folder;
  RandomRecords random(1);
  Run run = random.run();
  run.repeats.resize(1);
  run.repeats[0].samples = {Time::nanoseconds(5)};
  write_run(run, folder.file("run.json"));
  CHECK(read_run(folder.file("run.json")).repeats.at(0).samples == run.repeats[0].samples);
  std::filesystem::remove(folder.file("run.samples.json"));
  CHECK(read_run(folder.file("run.json")).repeats.at(0).samples.empty());
}

TEST_CASE("what older runs do not say has its default") {
  const TemporaryFolder folder;
  Run run;
  run.id = "old";
  run.batch_per_worker = 1;
  write_run(run, folder.file("run.json"));
  std::string text = slurp(folder.file("run.json"));
  for (const char* key : {"\"compute\"", "\"hosts\"", "\"emulated\"", "\"link_bytes_per_second\"",
                          "\"slow_links\"", "\"stragglers\""}) {
    const auto from = text.find(key);
    REQUIRE(from != std::string::npos);
    text.erase(from, text.find(',', from) + 1 - from);
  }
  const auto loaders = text.find("\"loaders\"");
  REQUIRE(loaders != std::string::npos);
  const auto comma = text.rfind(',', loaders);
  text.erase(comma, text.find('}', loaders) - comma);
  spill(folder.file("run.json"), text);
  CHECK(read_run(folder.file("run.json")) == run);
}

TEST_CASE("a breakdown in whole nanoseconds still adds up") {
  // 1.5 + 1.5 + 1.5 ns = 4.5 ns. Running sums 1.5, 3.0, 4.5 round to 2, 3, 5: parts 2, 1, 2.
  Breakdown exact;
  exact.compute = exact.exposed = exact.host = Time::picoseconds(1500);
  exact.hidden = Time::picoseconds(2700);
  const Breakdown rounded = in_whole_nanoseconds(exact);
  CHECK(rounded.compute == Time::nanoseconds(2));
  CHECK(rounded.exposed == Time::nanoseconds(1));
  CHECK(rounded.waiting == Time{});
  CHECK(rounded.host == Time::nanoseconds(2));
  CHECK(rounded.step() == Time::nanoseconds(5));
  CHECK(rounded.hidden == Time::nanoseconds(3));
}

TEST_CASE("a calibration of a GPU host stays below 300 kB") {
  // Two models of 160 layers, two batches, eager and as a graph, and six collective tables.
  Calibration calibration;
  for (const char* model : {"resnet18", "resnet50"}) {
    for (int batch : {32, 128}) {
      for (bool graph : {false, true}) {
        Profile profile;
        profile.model = model;
        profile.batch = batch;
        profile.graph = graph;
        for (int i = 0; i < 160; ++i) {
          Layer layer;
          layer.name = "layer" + std::to_string(i / 40) + "." + std::to_string(i % 40) + ".conv";
          layer.kind = "activation";
          layer.forward = {Time::nanoseconds(123'456), Time::nanoseconds(1'234'567 + i), 3};
          layer.backward = {Time::nanoseconds(123'456), Time::nanoseconds(2'345'678 + i), 5};
          layer.backward_order = 159 - i;
          layer.parameters = {{"weight", {9'437'184}, i}};
          layer.output = {102'760'448};
          profile.layers.push_back(layer);
        }
        calibration.profiles.push_back(profile);
      }
    }
  }
  for (int table = 0; table < 6; ++table) {
    CollectiveTable collective;
    collective.collective = "all_reduce";
    collective.workers = 2 + table;
    for (int i = 0; i < 20; ++i) {
      const Time time = Time::nanoseconds(1'234'567);
      collective.points.push_back({{1024LL << i}, time, time, time, time});
    }
    calibration.collectives.push_back(collective);
  }
  const TemporaryFolder folder;
  write_calibration(calibration, folder.file("calibration.json"));
  CHECK(std::filesystem::file_size(folder.file("calibration.json")) < 300'000);
  CHECK(read_calibration(folder.file("calibration.json")) == calibration);
}

TEST_CASE("the collective tables of four GPUs take less than 80 kB of a calibration") {
  // Of 2, 3 and 4: all-reduce and broadcast with sizes between and held out, five others; gather
  // and scatter of 2 and 4.
  Calibration calibration;
  const auto add = [&](int workers, int sizes, int held_out) {
    const Time time = Time::nanoseconds(1'234'567);
    CollectiveTable table;
    table.collective = "reduce_scatter";
    table.backend = "nccl";
    table.topology = kOneHost;
    table.workers = workers;
    table.call_between = time;
    for (int i = 1; i <= sizes; ++i) {
      table.points.push_back({{100'000'000LL + i}, time, time, time, time});
    }
    for (int i = 1; i <= held_out; ++i) {
      table.held_out.push_back({{100'000'000LL + i}, time, time, time, time});
    }
    calibration.collectives.push_back(table);
  };
  for (int workers = 2; workers <= 4; ++workers) {
    add(workers, 36, 19);
    add(workers, 20, 10);
    for (int other = 0; other < 5; ++other) add(workers, 11, 5);
    if (workers != 3) add(workers, 20, 0);
    if (workers != 3) add(workers, 20, 0);
  }
  const TemporaryFolder folder;
  write_calibration(calibration, folder.file("calibration.json"));
  CHECK(std::filesystem::file_size(folder.file("calibration.json")) < 80'000);
  CHECK(read_calibration(folder.file("calibration.json")) == calibration);
}

TEST_CASE("what was not measured is not written, and older records lack it") {
  const TemporaryFolder folder;
  Calibration calibration;
  calibration.collectives.resize(1);
  calibration.collectives[0].workers = 2;
  calibration.collectives[0].points = {{{1024}, {}, {}, {}, {}}};
  write_calibration(calibration, folder.file("c.json"));
  for (const char* key : {"held_out", "call_between_ns"}) {
    CHECK(slurp(folder.file("c.json")).find(key) == std::string::npos);
  }
  CHECK(read_calibration(folder.file("c.json")) == calibration);
}
