#include "runner/measure/layer_costs.h"

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

/// Two layers: forward 0, forward 1, the way to backward, backward 1, backward 0, optimizer, rest.
void mark_step(MarkLog& log) {
  log.mark(Mark::step_begin, -1);
  log.mark(Mark::forward_begin, -1);
  log.mark(Mark::forward_end, 0);
  log.mark(Mark::forward_end, 1);
  log.mark(Mark::backward_begin, -1);
  log.mark(Mark::backward_begin, 1);
  log.mark(Mark::backward_begin, 0);
  log.mark(Mark::backward_end, -1);
  log.mark(Mark::optimizer_begin, -1);
  log.mark(Mark::optimizer_end, -1);
  log.mark(Mark::step_end, -1);
}

std::vector<Stretch> step_of_ten_each() {
  std::int64_t now = 0;
  MarkLog log([&now] { return now += 10; });
  mark_step(log);
  return log.stretches();
}

DeviceWork kernel(std::int64_t issued, std::int64_t start, std::int64_t length) {
  DeviceWork work;
  work.issued = issued;
  work.start = start;
  work.end = start + length;
  return work;
}

TEST_CASE("marks cut a step into stretches that add up to it") {
  const std::vector<Stretch> stretches = step_of_ten_each();
  REQUIRE(stretches.size() == 10);  // eleven marks
  CHECK(stretches[0].kind == StretchKind::overhead);
  CHECK(stretches[1].kind == StretchKind::forward);
  CHECK(stretches[1].layer == 0);
  CHECK(stretches[3].kind == StretchKind::overhead);  // until backward is called
  CHECK(stretches[4].kind == StretchKind::overhead);  // until its first layer
  CHECK(stretches[5].kind == StretchKind::backward);
  CHECK(stretches[5].layer == 1);
  CHECK(stretches[6].layer == 0);
  CHECK(stretches[8].kind == StretchKind::optimizer);
  CHECK(total_of(durations(stretches)) == Time::nanoseconds(100));  // from 10 to 110
}

TEST_CASE("eager kernels belong to the stretch in which they were launched") {
  // Stretch i lasts from 10 (i + 1) to 10 (i + 2). Launched at 20 (forward 0), 25 (forward 0), 59
  // (overhead before backward 1), 60 (backward 1) and 5, 110 (outside the step); they run later.
  const std::vector<DeviceWork> work = {kernel(20, 1000, 7),  kernel(25, 1010, 5),
                                        kernel(59, 1020, 2),  kernel(60, 1030, 3),
                                        kernel(5, 900, 1000), kernel(110, 2000, 1000)};
  const LayerTimes times = work_by_issue(step_of_ten_each(), work);
  CHECK(times[1].time == Time::nanoseconds(12));
  CHECK(times[1].launches == 2);
  CHECK(times[4].time == Time::nanoseconds(2));
  CHECK(times[5].time == Time::nanoseconds(3));
  CHECK(launches_of(times) == 4);
  CHECK(total_of(times) == Time::nanoseconds(17));
}

TEST_CASE("a replay's kernels are shared out in the order of capture") {
  // The log reads how much the capture holds: two kernels in forward 0, none in 1, one in
  // backward 1.
  const std::vector<std::int64_t> held = {0, 0, 2, 2, 2, 2, 3, 3, 3, 4, 4};
  std::size_t next = 0;
  MarkLog log([&] { return held[next++]; });
  mark_step(log);
  std::vector<DeviceWork> work;
  for (int i = 0; i < 8; ++i) work.push_back(kernel(1, 100 * i, 1 + i));
  const auto replays = by_replay(work, 2, 4);
  REQUIRE(replays.size() == 2);
  const LayerTimes times = work_in_order(log.stretches(), replays[1]);  // lengths 5, 6, 7, 8
  CHECK(times[1].time == Time::nanoseconds(11));
  CHECK(times[2].launches == 0);
  CHECK(times[5].time == Time::nanoseconds(7));
  CHECK(times[8].time == Time::nanoseconds(8));
  CHECK(by_replay(work, 3, 4).empty());
}

TEST_CASE("medians are taken stretch by stretch, and steps must agree") {
  StretchSamples samples;
  for (const int length : {3, 100, 5}) {
    samples.add({{StretchKind::forward, 0, Time::nanoseconds(length), 1}});
  }
  CHECK(samples.median()[0].time == Time::nanoseconds(5));
  CHECK_THROWS_AS(samples.add({{StretchKind::backward, 0, Time(), 1}}), RunError);
}

TEST_CASE("costs hold kernel times, an even share of the gaps, and host times") {
  Profile profile;
  profile.layers.resize(2);
  const LayerTimes work = {{StretchKind::overhead, -1, Time::nanoseconds(4), 1},
                           {StretchKind::forward, 0, Time::nanoseconds(12), 2},
                           {StretchKind::backward, 1, Time::nanoseconds(7), 1},
                           {StretchKind::backward, 0, Time(), 0},
                           {StretchKind::optimizer, -1, Time::nanoseconds(8), 1}};
  // Back to back the step takes 46: five kernels of 31 in all leave 15, 3 for each.
  const Time gap = gap_of(Time::nanoseconds(46), work);
  CHECK(gap == Time::nanoseconds(3));
  CHECK(gap_of(Time::nanoseconds(30), work) == Time());
  LayerTimes host = {{StretchKind::forward, 0, Time::nanoseconds(10), 0},
                     {StretchKind::overhead, -1, Time::nanoseconds(30), 0}};
  scale_to(host, Time::nanoseconds(20));
  fill_costs(profile, work, host, gap);
  CHECK(profile.layers[0].forward.device == Time::nanoseconds(12 + 2 * 3));
  CHECK(profile.layers[0].forward.host == Time::nanoseconds(5));
  CHECK(profile.layers[0].forward.launches == 2);
  CHECK(profile.layers[1].backward.device == Time::nanoseconds(10));
  CHECK(profile.layers[1].backward_order == 0);
  CHECK(profile.layers[0].backward_order == 1);
  CHECK(profile.optimizer.device == Time::nanoseconds(11));
  CHECK(profile.step_overhead.device == Time::nanoseconds(7));
  CHECK(profile.step_overhead.host == Time::nanoseconds(15));
}

}  // namespace
}  // namespace lockstep::runner
