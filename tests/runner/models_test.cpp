#include <numeric>

#include "runner/measure/bench.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {

TEST_CASE("Networks have the published number of parameters") {
  // small CNN: convolutions 3*32*9+32 = 896, 32*64*9+64 = 18496, 64*128*9+128 = 73856; norms
  // 2*(32+64+128) = 448; linear 128*4*4*10+10 = 20490.
  CHECK(make_model("small_cnn", c10::kCPU, 1).parameter_count() ==
        896 + 18496 + 73856 + 448 + 20490);
  CHECK(make_model("vgg11", c10::kCPU, 1).parameter_count() == 9'231'114);
  CHECK_THROWS_WITH(make_model("vgg12", c10::kCPU, 1), Contains("small_cnn, vgg11"));
}

TEST_CASE("The same seed draws the same parameters") {
  const Model a = make_model("small_cnn", c10::kCPU, 7);
  const Model b = make_model("small_cnn", c10::kCPU, 7);
  const Model c = make_model("small_cnn", c10::kCPU, 8);
  CHECK(a.parameters()[0].equal(b.parameters()[0]));
  CHECK_FALSE(a.parameters()[0].equal(c.parameters()[0]));
}

TEST_CASE("Buffers of the norms are views of one tensor per type") {
  const Model model = make_model("small_cnn", c10::kCPU, 1);
  REQUIRE(model.flat_buffers().size() == 2);
  CHECK(model.flat_buffers()[0].numel() == 2 * (32 + 64 + 128));
  CHECK(model.flat_buffers()[1].numel() == 3);
  const ModelLayer& norm = model.layers()[1];
  REQUIRE(norm.kind == "norm");
  CHECK(norm.buffers[0].tensor.data_ptr() == model.flat_buffers()[0].data_ptr());
}

TEST_CASE("The marks of a step cut it into parts that add up") {
  const auto device = make_cpu_device(1);
  Bench bench({.model = "small_cnn", .batch = 4}, nullptr, *device);
  const std::vector<int> ready = bench.ready_order();
  const StepParts parts = bench.profiled_step();
  const auto sum = [](const std::vector<Moment>& times) {
    return std::accumulate(times.begin(), times.end(), Moment{0});
  };
  CHECK(sum(parts.forward) + sum(parts.backward) + parts.optimizer + parts.other == parts.total);

  // Backward visits every layer once, from the loss to the first.
  std::vector<int> expected(bench.model().layers().size());
  std::iota(expected.rbegin(), expected.rend(), 0);
  CHECK(parts.backward_order == expected);
  for (std::size_t i = 0; i < parts.forward.size(); ++i) {
    CHECK(parts.forward[i] > 0);
    CHECK(parts.backward[i] > 0);
  }

  // Every gradient gets ready once, those of later layers before those of earlier ones.
  REQUIRE(ready.size() == bench.model().parameters().size());
  const Profile profile = host_profile(bench.model(), {parts}, ready);
  std::vector<int> places;
  for (auto layer = profile.layers.rbegin(); layer != profile.layers.rend(); ++layer) {
    std::vector<int> mine;
    for (const Parameter& parameter : layer->parameters) mine.push_back(parameter.ready_order);
    std::ranges::sort(mine);
    places.insert(places.end(), mine.begin(), mine.end());
  }
  std::vector<int> ascending(places.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  CHECK(places == ascending);
}

TEST_CASE("Marks are cut by hand as by cut_at_marks") {
  // Two layers; forward 10 and 20, then 5 of nothing, backward of layer 1 takes 40 and of layer 0
  // 60, the optimizer 7; 3 before the forward and 2 at the end are outside: other = 3 + 5 + 1 + 2.
  const std::vector<MarkedMoment> marks{
      {Mark::step_begin, -1, 100},    {Mark::forward_begin, -1, 103},
      {Mark::forward_end, 0, 113},    {Mark::forward_end, 1, 133},
      {Mark::backward_begin, 1, 138}, {Mark::backward_begin, 0, 178},
      {Mark::backward_end, -1, 238},  {Mark::optimizer_begin, -1, 239},
      {Mark::optimizer_end, -1, 246}, {Mark::step_end, -1, 248}};
  const StepParts parts = cut_at_marks(marks, 2);
  CHECK(parts.forward == std::vector<Moment>{10, 20});
  CHECK(parts.backward == std::vector<Moment>{60, 40});
  CHECK(parts.backward_order == std::vector<int>{1, 0});
  CHECK(parts.optimizer == 7);
  CHECK(parts.other == 11);
  CHECK(parts.total == 148);
}

}  // namespace lockstep::runner
