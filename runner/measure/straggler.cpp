#include "runner/measure/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>

#include "runner/measure/clock.h"
#include "sim/core/error.h"
#include "sim/core/units.h"

namespace lockstep::runner {

namespace {

constexpr const char* kFlag = "--straggler";
constexpr const char* kHint =
    "as in rank=1,factor=1.5 or rank=1,delay=20ms,phase=backward (step, input, forward, backward)";

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

}  // namespace

InjectedStraggler parse_straggler(const std::string& text) {
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

void check_stragglers(const std::vector<InjectedStraggler>& stragglers, int workers) {
  for (const InjectedStraggler& straggler : stragglers) {
    if (straggler.rank < workers) continue;
    fail(fmt::format("there is no rank {} among {} workers", straggler.rank, workers));
  }
}

Slowness::Slowness(const std::vector<InjectedStraggler>& all, int rank, Moment spin) : pace_(spin) {
  for (const InjectedStraggler& straggler : all) {
    if (straggler.rank != rank) continue;
    mine_.push_back(straggler);
    factor_ *= straggler.factor;
  }
}

void Slowness::delay(StepPart part) {
  for (const InjectedStraggler& straggler : mine_) {
    if (straggler.part == part && straggler.delay > Time{}) pace_.pass(straggler.delay.ns());
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

void SlowRecorder::mark(Mark mark, int layer) {
  switch (mark) {
    case Mark::forward_begin:
      slowness_.delay(StepPart::forward);
      slowness_.begin_work();
      break;
    case Mark::backward_begin:
      slowness_.catch_up();
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
      break;
    case Mark::step_begin:
    case Mark::step_end:
      break;
  }
  if (inner_ != nullptr && (layer < 0 || inner_->layers())) inner_->mark(mark, layer);
}

}  // namespace lockstep::runner
