// The largest calibrations that one visit to four GPUs is meant to give.
#include <filesystem>
#include <numeric>

#include "runner/measure/profile.h"
#include "runner/models/zoo.h"
#include "sim/records/calibration.h"
#include "tests/catch.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::runner {
namespace {

/// What a profile of that model looks like: times and sizes with as many digits as real ones have.
Profile profile_like(const Model& model) {
  const std::size_t layers = model.layers().size();
  StepParts parts;
  parts.forward.assign(layers, 1'234'567);
  parts.backward.assign(layers, 2'345'678);
  parts.backward_order.resize(layers);
  std::iota(parts.backward_order.rbegin(), parts.backward_order.rend(), 0);
  parts.total = static_cast<Moment>(layers) * (1'234'567 + 2'345'678);
  std::vector<int> ready(model.parameters().size());
  std::iota(ready.rbegin(), ready.rend(), 0);
  Profile profile = host_profile(model, {parts}, ready);
  for (Layer& layer : profile.layers) {
    layer.forward.launches = 3;
    layer.backward.launches = 12;
    layer.output = {1'027'604'480};
  }
  profile.device = "NVIDIA H100 80GB HBM3";
  return profile;
}

}  // namespace

TEST_CASE("three batches of a large network on 1 to 4 GPUs make less than 300 kB") {
  constexpr std::uintmax_t kTables = 30'000;  // collectives and where all that comes from
  for (const char* name : {"resnet50", "inception_v3", "gpt2_small_dropout"}) {
    INFO(name);
    Profile profile = profile_like(make_model(name, c10::kCPU, 1));
    Calibration calibration;
    for (const int batch : {32, 128, 512}) {
      for (const int beside : {1, 2, 3, 4}) {
        for (const bool graph : {false, true}) {
          profile.batch = batch;
          profile.beside = beside;
          profile.graph = graph;
          for (Layer& layer : profile.layers) {  // the host issues no layer of a graph
            layer.forward.host = layer.backward.host = Time::nanoseconds(graph ? 0 : 123'456);
          }
          calibration.profiles.push_back(profile);
        }
      }
    }
    const testing::TemporaryFolder folder;
    write_calibration(calibration, folder.file("calibration.json"));
    CHECK(std::filesystem::file_size(folder.file("calibration.json")) < 300'000 - kTables);
  }
}

}  // namespace lockstep::runner
