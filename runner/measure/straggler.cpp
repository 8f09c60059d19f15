#include "runner/measure/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "runner/measure/clock.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/core/variability.h"
#include "sim/scenario/config_node.h"
#include "sim/scenario/parts.h"

namespace lockstep::runner {

namespace {

constexpr const char* kFlag = "--straggler";
constexpr const char* kHint =
    "as in rank=1,factor=1.5 or rank=1,delay=20ms,phase=backward (step, input, forward, backward), "
    "or {worker: all, delay: {kind: log_normal, median: 5ms, sigma: 0.5}}";

[[noreturn]] void fail(const std::string& what) {
  throw InputError({}, kFlag, what, kHint);
}

template <typename Number>
Number number(const std::string& key, const std::string& text, Number least, Number most) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least && value <= most)) {
    fail(fmt::format("{}={} is not a number from {} to {}", key, text, least, most));
  }
  return value;
}

StepPart part_named(const std::string& text) {
  if (text == "step") return StepPart::step;
  if (text == "input") return StepPart::input;
  if (text == "forward") return StepPart::forward;
  if (text == "backward") return StepPart::backward;
  fail(fmt::format("there is no phase \"{}\"", text));
}

Time delay_of(const std::string& text) {
  try {
    const Time delay = parse_time(text);
    if (delay > Time{} && delay <= Time::milliseconds(3'600'000)) return delay;
  } catch (const std::invalid_argument& error) {
    fail(fmt::format("delay={}: {}", text, error.what()));
  }
  fail(fmt::format("delay={} is not above zero and within an hour", text));
}

/// Written as in a scenario.
InjectedStraggler parse_map(const std::string& text) {
  const Straggler written = read_straggler(parse_yaml(text, kFlag));
  InjectedStraggler straggler{.rank = std::max(0, written.worker),
                              .factor = written.slowdown.value(),
                              .delay = written.delay,
                              .part = written.part,
                              .all = written.worker == kEveryWorker,
                              .factor_varies = written.slowdown_varies,
                              .delay_varies = written.delay_varies};
  if (straggler.factor < 1) fail("a worker cannot be made faster than it is");
  if (varies(straggler.factor_varies)) {
    double& least = straggler.factor_varies.least;
    least = std::max(least, 1 / straggler.factor);
  }
  return straggler;
}

}  // namespace

InjectedStraggler parse_straggler(const std::string& text) {
  if (text.starts_with("{")) return parse_map(text);
  InjectedStraggler straggler;
  std::vector<std::string> seen;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) fail(fmt::format("\"{}\" has no value", word));
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (std::ranges::find(seen, key) != seen.end()) fail(fmt::format("{} is given twice", key));
    seen.push_back(key);
    if (key == "rank") {
      straggler.rank = number<int>(key, value, 0, 1 << 20);
    } else if (key == "factor") {
      straggler.factor = number<double>(key, value, 1, 1000);
    } else if (key == "delay") {
      straggler.delay = delay_of(value);
    } else if (key == "phase") {
      straggler.part = part_named(value);
    } else {
      fail(fmt::format("\"{}\" is not known", key));
    }
  }
  const auto given = [&seen](const char* key) {
    return std::ranges::find(seen, key) != seen.end();
  };
  if (!given("rank")) fail("it has no rank");
  if (!given("factor") && !given("delay")) fail("it has neither a factor nor a delay");
  if (given("phase") && !given("delay")) fail("a phase belongs to a delay");
  return straggler;
}

std::uint64_t draws_of_repeat(std::uint64_t seed, int repeat) {
  constexpr int kRepeatBit = 40;
  return seed ^ static_cast<std::uint64_t>(repeat) << kRepeatBit;
}

void check_stragglers(const std::vector<InjectedStraggler>& stragglers, int workers) {
  for (const InjectedStraggler& straggler : stragglers) {
    if (straggler.all || straggler.rank < workers) continue;
    fail(fmt::format("there is no rank {} among {} workers", straggler.rank, workers));
  }
}

Slowness::Slowness(const std::vector<InjectedStraggler>& all, int rank, Moment spin,
                   std::uint64_t seed)
    : seed_(seed), rank_(static_cast<std::uint32_t>(rank)), begin_(host_now()), pace_(spin) {
  for (std::uint32_t place = 0; place < all.size(); ++place) {
    if (!all[place].all && all[place].rank != rank) continue;
    mine_.push_back({.straggler = all[place], .place = place});
    factor_ *= all[place].factor;
  }
}

DrawKey Slowness::key(const Mine& mine) const {
  return {.seed = seed_, .worker = rank_, .iteration = step_, .task = kDrawStream - mine.place};
}

void Slowness::next_step() {
  ++step_;
  factor_ = 1;
  for (const Mine& mine : mine_) {
    factor_ *= mine.straggler.factor;
    const Variability& varies = mine.straggler.factor_varies;
    factor_ *= draw(varies, key(mine)).value();
  }
}

Time Slowness::length_of(Mine& mine) const {
  const Time delay = mine.straggler.delay;
  const Variability& varies = mine.straggler.delay_varies;
  if (delay == Time{}) return {};
  if (!by_clock(varies)) return scale(delay, draw(varies, key(mine)));
  const Time now = Time::nanoseconds(host_now() - begin_);
  const std::int64_t due = pauses_due(varies, key(mine), mine.passed, now);
  mine.passed = now;
  return delay * due;
}

void Slowness::delay(StepPart part) {
  for (Mine& mine : mine_) {
    if (mine.straggler.part != part) continue;
    const Time length = length_of(mine);
    if (length == Time{}) continue;
    if (device_ != nullptr && (part == StepPart::forward || part == StepPart::backward)) {
      device_->hold(length.ns());
    } else {
      pace_.pass(length.ns());
    }
  }
}

void Slowness::begin_work() {
  since_ = host_now();
}

void Slowness::catch_up() {
  if (factor_ > 1) {
    const auto worked = static_cast<double>(host_now() - since_);
    pace_.pass(static_cast<Moment>((factor_ - 1) * worked));
  }
  since_ = host_now();
}

void Slowness::stretch_device(Mark mark, int layer) {
  // A kernel that does nothing takes some microseconds, too: many short ones make one.
  constexpr Moment kShortest = 20'000;
  if (device_ == nullptr || factor_ <= 1) return;
  const auto work = static_cast<double>(device_->work_before(mark, layer));
  owed_ += static_cast<Moment>((factor_ - 1) * work);
  if (owed_ < kShortest) return;
  device_->hold(std::exchange(owed_, 0));
  since_ = host_now();  // launching it is none of the work
}

void SlowRecorder::mark(Mark mark, int layer) {
  switch (mark) {
    case Mark::forward_begin:
      slowness_.delay(StepPart::forward);
      slowness_.begin_work();
      break;
    case Mark::backward_begin:
      slowness_.catch_up();
      slowness_.stretch_device(mark, layer);
      if (layer < 0) {
        slowness_.delay(StepPart::backward);
        slowness_.begin_work();
      }
      break;
    case Mark::optimizer_begin:
      slowness_.begin_work();
      break;
    case Mark::forward_end:
    case Mark::backward_end:
    case Mark::optimizer_end:
      slowness_.catch_up();
      slowness_.stretch_device(mark, layer);
      break;
    case Mark::step_begin:
    case Mark::step_end:
      break;
  }
  if (inner_ != nullptr && (layer < 0 || inner_->layers())) inner_->mark(mark, layer);
}

}  // namespace lockstep::runner
