// Waiting instead of computing: order, sizes and least durations; a wait may always be longer.
#include "runner/measure/replay.h"

#include "runner/measure/clock.h"
#include "runner/measure/profile.h"
#include "runner/measure/straggler.h"
#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

/// Notes which gradients got ready, and how large they are then.
class Watching final : public Strategy {
 public:
  explicit Watching(const Model& model) : model_(model) {}
  std::string kind() const override { return "watching"; }
  double loss_weight() const override { return 1; }
  bool watches_gradients() const override { return true; }
  void gradient_ready(int parameter) override {
    ready.push_back(parameter);
    const at::Tensor& gradient = model_.parameters()[static_cast<std::size_t>(parameter)].grad();
    bytes.push_back(gradient.defined() ? static_cast<std::int64_t>(gradient.nbytes()) : 0);
  }
  void before_optimizer() override {}
  const std::vector<at::Tensor>& gradients() const override { return none_; }
  std::vector<BucketMoments> take_buckets() override { return {}; }

  std::vector<int> ready;
  std::vector<std::int64_t> bytes;

 private:
  const Model& model_;
  std::vector<at::Tensor> none_;
};

Cost cost(std::int64_t us) {
  return {.host = {}, .device = Time::nanoseconds(us * 1000)};
}

/// Three layers whose backward runs 2, 0, 1 and whose parameters get ready 3, 0, 2, 1: within layer
/// 0 the bias before the weight.
Profile three_layers() {
  Profile profile;
  profile.model = "three";
  profile.batch = 8;
  profile.layers = {
      {.name = "a",
       .kind = "norm",
       .forward = cost(300),
       .backward = cost(500),
       .backward_order = 1,
       .parameters = {{"weight", {400}, 2}, {"bias", {40}, 1}},
       .buffers = {80},
       .output = {}},
      {.name = "b",
       .kind = "conv",
       .forward = cost(200),
       .backward = cost(700),
       .backward_order = 2,
       .parameters = {{"weight", {1200}, 3}},
       .buffers = {},
       .output = {}},
      {.name = "c",
       .kind = "linear",
       .forward = cost(100),
       .backward = cost(150),
       .backward_order = 0,
       .parameters = {{"weight", {800}, 0}},
       .buffers = {},
       .output = {}},
  };
  profile.optimizer = cost(250);
  profile.step_overhead = cost(100);
  profile.input_load = Time::nanoseconds(400'000);
  return profile;
}

}  // namespace

TEST_CASE("A replayed network has the profile's parameters and buffers") {
  const Model model = replayed_model(three_layers());
  CHECK(model.parameter_count() == (400 + 40 + 1200 + 800) / 4);
  CHECK(model.parameters().size() == 4);
  REQUIRE(model.flat_buffers().size() == 2);
  CHECK(model.flat_buffers()[0].nbytes() == 80);
  CHECK(model.flat_buffers()[1].numel() == 1);  // batches that the norm has seen
}

TEST_CASE("A replay keeps the profile's order and takes at least its time") {
  const Profile profile = three_layers();
  const Model model = replayed_model(profile);
  Watching strategy(model);
  Replay replay(profile, model, strategy, nullptr, 0);
  HostRecorder recorder;
  const Moment begin = host_now();
  replay.step(&recorder);
  const Moment took = host_now() - begin;
  CHECK(strategy.ready == std::vector<int>{3, 1, 0, 2});
  CHECK(strategy.bytes == std::vector<std::int64_t>{800, 40, 400, 1200});
  // 100 + (300 + 200 + 100) + (150 + 500 + 700) + 250 us
  CHECK(took >= 2'300'000);

  const StepParts parts = cut_at_marks(recorder.marks(), 3);
  CHECK(parts.backward_order == std::vector<int>{2, 0, 1});
  for (const at::Tensor& parameter : model.parameters()) CHECK_FALSE(parameter.grad().defined());

  Replay fresh(profile, model, strategy, nullptr, 0);
  const Moment loading = host_now();
  fresh.load();
  CHECK(host_now() - loading >= 400'000);
}

TEST_CASE("What is waited too long is taken from the next waits, and no more than that") {
  constexpr int kTimes = 200;
  constexpr Moment kEach = 20'000;
  Pace pace(0);
  const Moment begin = host_now();
  for (int i = 0; i < kTimes; ++i) pace.pass(kEach);
  // Owing nothing before, it cannot have waited for less than all of them.
  CHECK(host_now() - begin >= kTimes * kEach);
  const Moment deadline = host_now() + 300'000;
  wait_until(deadline, 50'000);
  CHECK(host_now() >= deadline);
}

TEST_CASE("A straggler is parsed") {
  const InjectedStraggler slow = parse_straggler("rank=1,factor=1.5");
  CHECK(slow == InjectedStraggler{.rank = 1, .factor = 1.5, .delay = {}, .part = StepPart::step});
  const InjectedStraggler late = parse_straggler("delay=20ms,phase=backward,rank=0");
  CHECK(late ==
        InjectedStraggler{
            .rank = 0, .factor = 1, .delay = Time::milliseconds(20), .part = StepPart::backward});
  for (const char* text :
       {"", "rank=1", "factor=2", "rank=1,factor=0.5", "rank=-1,factor=2", "rank=1,factor=two",
        "rank=1,factor=2,factor=2", "rank=1,factor=nan", "rank=1,delay=20", "rank=1,delay=-1ms",
        "rank=1,delay=20ms,phase=lunch", "rank=1,factor=2,phase=forward", "rank=1,pause=1ms",
        "rank=1,factor", "rank=1,delay=2h", "rank=1,factor=1e9"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_straggler(text), InputError);
  }
  CHECK_NOTHROW(check_stragglers({slow}, 2));
  CHECK_THROWS_WITH(check_stragglers({slow}, 1), Contains("no rank 1 among 1"));
}

TEST_CASE("A slow worker takes by its factor longer, a late one by its delay") {
  const std::vector<InjectedStraggler> all{
      {.rank = 1, .factor = 3, .delay = {}, .part = StepPart::step},
      {.rank = 2, .factor = 1, .delay = Time::milliseconds(2), .part = StepPart::forward}};
  CHECK_FALSE(Slowness(all, 0, 0).any());

  Slowness slow(all, 1, 0);
  REQUIRE(slow.any());
  const Moment begin = host_now();
  slow.begin_work();
  wait_until(begin + 1'000'000, 1'000'000);  // work
  slow.catch_up();
  CHECK(host_now() - begin >= 3'000'000);

  Slowness late(all, 2, 0);
  const Moment before = host_now();
  late.delay(StepPart::forward);
  CHECK(host_now() - before >= 2'000'000);

  // In a replay the factor is on the waits: 3 x 2300 us.
  const Profile profile = three_layers();
  const Model model = replayed_model(profile);
  Watching strategy(model);
  Replay replay(profile, model, strategy, &slow, 0);
  const Moment replaying = host_now();
  replay.step(nullptr);
  CHECK(host_now() - replaying >= 6'900'000);
}

TEST_CASE("A straggler that varies is written as in a scenario") {
  const InjectedStraggler late = parse_straggler(
      "{worker: all, delay: {kind: log_normal, median: 5ms, sigma: 0.5}, part: backward}");
  CHECK(late.all);
  CHECK(late.delay == Time::milliseconds(5));
  CHECK(late.part == StepPart::backward);
  CHECK(late.delay_varies == Variability{.kind = Variability::Kind::log_normal, .sigma = 0.5});
  // Nobody is made faster than he is: 2 x draw is one at least.
  const InjectedStraggler slow =
      parse_straggler("{worker: 1, slowdown: {kind: log_normal, median: 2, sigma: 3}}");
  CHECK(slow.rank == 1);
  CHECK(slow.factor == 2);
  CHECK(slow.factor_varies.least == 0.5);
  CHECK_NOTHROW(check_stragglers({late}, 1));
  for (const char* text :
       {"{worker: 1}", "{worker: 1, slowdown: 0.5}",
        "{worker: 1, slowdown: {kind: pareto, shape: 1}}",
        "{worker: 1, delay: {kind: log_normal, median: 5ms, sigma: -1}}", "{worker: 1",
        "{worker: 1, delay: {kind: periodic, duration: 5ms, every: 0}}"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_straggler(text), InputError);
  }
}

TEST_CASE("A worker is slowed by what the simulator would draw") {
  const std::vector<InjectedStraggler> all{
      parse_straggler("{worker: 0, slowdown: 1.5}"),
      parse_straggler("{worker: all, slowdown: {kind: pareto, shape: 2}}")};
  constexpr std::uint64_t kSeed = 11;
  Slowness slow(all, 3, 0, kSeed);
  REQUIRE(slow.any());
  for (std::uint32_t step = 1; step <= 5; ++step) {
    slow.next_step();
    CHECK(slow.factor() == draw(all[1].factor_varies, {kSeed, 3, step, kDrawStream - 1}).value());
  }
  Slowness both(all, 0, 0, kSeed);
  both.next_step();
  CHECK(both.factor() ==
        Approx(1.5 * draw(all[1].factor_varies, {kSeed, 0, 1, kDrawStream - 1}).value()));
}

TEST_CASE("A worker pauses every other step, or by the clock") {
  const auto waited = [](Slowness& slowness) {
    slowness.next_step();
    const Moment begin = host_now();
    slowness.delay(StepPart::step);
    return host_now() - begin;
  };
  constexpr Moment kPause = 27'000'000;  // 30 ms, less what an earlier wait was too long
  Slowness steps(
      {parse_straggler("{worker: 0, delay: {kind: periodic, duration: 30ms, every: 2}}")}, 0, 0);
  // Step 1 is the second of two.
  for (int i = 0; i < 3; ++i) {
    CHECK(waited(steps) >= kPause);
    CHECK(waited(steps) < kPause);
  }
  Slowness clock(
      {parse_straggler("{worker: 0, delay: {kind: periodic, duration: 30ms, period: 200ms}}")}, 0,
      0);
  const Moment begin = host_now();
  CHECK(waited(clock) < kPause);
  wait_until(begin + 250'000'000, 0);
  CHECK(waited(clock) >= kPause);  // due at 200 ms
  CHECK(waited(clock) < kPause);
}

}  // namespace lockstep::runner
