#include "sim/analysis/breakdown.h"

#include <algorithm>

#include "sim/analysis/spans.h"
#include "sim/core/error.h"

namespace lockstep {
namespace {

using Part = Time Breakdown::*;

/// Distributes stretches of time, given in order, over the steps they lie in.
class StepSums {
 public:
  explicit StepSums(const std::vector<Time>& step_end) : step_end_(step_end) {}

  template <typename Add>
  void add(Time from, Time to, Add&& to_step) {
    while (from < to) {
      while (step_ < step_end_.size() && step_end_[step_] <= from) ++step_;
      if (step_ == step_end_.size()) return;
      const Time cut = std::min(to, step_end_[step_]);
      to_step(step_, cut - from);
      from = cut;
    }
  }

 private:
  const std::vector<Time>& step_end_;
  std::size_t step_ = 0;
};

/// Walks along the compute lane and puts a name to every moment.
class Classifier {
 public:
  Classifier(const WorkerSpans& view, const std::vector<Time>& ends, std::vector<StepParts>& steps)
      : view_(view), steps_(steps), sums_(ends) {}

  void busy(Time from, Time to, TaskKind kind) {
    add(from, to, kind == TaskKind::input ? &Breakdown::input : &Breakdown::compute);
  }
  void waiting(Time from, Time to) { add(from, to, &Breakdown::waiting); }

  /// The lane is empty until `to`; its next task was issued and its batch there at the times given.
  void gap(Time from, Time to, Time issued, Time input) {
    const Time host_end = std::clamp(issued, from, to);
    add(from, host_end, &Breakdown::host);
    from = host_end;
    for (; from < to && collective_ < view_.collectives(); ++collective_) {
      const CollectiveSpan& span = view_.collective(collective_);
      rest(from, std::clamp(span.launch, from, to), input);
      from = std::clamp(span.launch, from, to);
      const Time started = std::clamp(span.transfer_start, from, to);
      const Time ended = std::clamp(span.end, started, to);
      add(from, started, &Breakdown::waiting);
      add(started, ended, &Breakdown::exposed);
      from = ended;
      if (span.end > to) return;
    }
    rest(from, to, input);
  }

 private:
  void rest(Time from, Time to, Time input) {
    const Time there = std::clamp(input, from, to);
    add(from, there, &Breakdown::input);
    add(there, to, &Breakdown::idle);
  }
  void add(Time from, Time to, Part part) {
    sums_.add(from, to, [&](std::size_t step, Time time) { steps_[step].breakdown.*part += time; });
  }

  const WorkerSpans& view_;
  std::vector<StepParts>& steps_;
  StepSums sums_;
  std::size_t collective_ = 0;  ///< the first that may not have ended yet
};

/// Communication beside busy stretches of the compute lane, both in order.
void add_hidden(const WorkerSpans& view, const std::vector<std::pair<Time, Time>>& busy,
                const std::vector<Time>& ends, std::vector<StepParts>& steps) {
  StepSums sums(ends);
  std::size_t next = 0;
  for (std::size_t c = 0; c < view.collectives(); ++c) {
    const CollectiveSpan& span = view.collective(c);
    while (next < busy.size() && busy[next].second <= span.transfer_start) ++next;
    for (std::size_t i = next; i < busy.size() && busy[i].first < span.end; ++i) {
      sums.add(std::max(busy[i].first, span.transfer_start), std::min(busy[i].second, span.end),
               [&](std::size_t step, Time time) { steps[step].breakdown.hidden += time; });
    }
  }
}

void add_host(const WorkerSpans& view, const std::vector<Time>& ends,
              std::vector<StepParts>& steps) {
  constexpr auto kHost = static_cast<std::size_t>(Lane::host);
  const Program& program = view.program();
  StepSums sums(ends);
  for (std::size_t iteration = 0; iteration < steps.size(); ++iteration) {
    for (std::uint32_t t = program.lane_begin[kHost]; t < program.lane_begin[kHost + 1]; ++t) {
      if (program.tasks[t].kind != TaskKind::issue) continue;  // it stands still
      const TaskSpan& span = view.task(iteration, t);
      sums.add(span.start, span.end,
               [&](std::size_t step, Time time) { steps[step].host_busy += time; });
    }
  }
}

/// When what task `t` waited for on other lanes was there: its launch by the host, its batch.
struct Arrivals {
  Time issued, input;
};

Arrivals arrivals(const WorkerSpans& view, const Predecessors& before, std::size_t iteration,
                  std::uint32_t t) {
  Arrivals result;
  for (std::uint32_t p = before.first[t]; p < before.first[t + 1]; ++p) {
    const Lane lane = view.program().tasks[before.tasks[p]].lane;
    const Time end = view.task(iteration, before.tasks[p]).end;
    if (lane == Lane::host) result.issued = std::max(result.issued, end);
    if (lane == Lane::copy || lane == Lane::loader) result.input = std::max(result.input, end);
  }
  return result;
}

}  // namespace

std::vector<StepParts> break_down(const TaskGraph& graph, const EngineResult& result,
                                  std::uint32_t worker) {
  return break_down(graph, result, worker, result.step_end[worker]);
}

std::vector<StepParts> break_down(const TaskGraph& graph, const EngineResult& result,
                                  std::uint32_t worker, const std::vector<Time>& ends) {
  constexpr auto kCompute = static_cast<std::size_t>(Lane::compute);
  const WorkerSpans view(graph, result, worker);
  const Program& program = view.program();
  const Predecessors before(program);
  std::vector<StepParts> steps(view.iterations());
  std::vector<std::pair<Time, Time>> busy;
  Classifier classify(view, ends, steps);
  Time now;
  for (std::size_t iteration = 0; iteration < steps.size(); ++iteration) {
    for (std::uint32_t t = program.lane_begin[kCompute]; t < program.lane_begin[kCompute + 1];
         ++t) {
      const TaskSpan& span = view.task(iteration, t);
      const auto [issued, input] = arrivals(view, before, iteration, t);
      classify.gap(now, span.start, issued, input);
      classify.busy(span.start, span.end, program.tasks[t].kind);
      if (span.end > span.start) busy.emplace_back(span.start, span.end);
      now = span.end;
    }
  }
  // After the last compute task of all there is nothing left to issue.
  classify.gap(now, view.step_end().back(), view.step_end().back(), Time{});
  classify.waiting(view.step_end().back(), ends.back());
  add_hidden(view, busy, ends, steps);
  add_host(view, ends, steps);
  return steps;
}

Time host_busy(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker,
               const std::vector<Time>& ends, std::size_t first) {
  const WorkerSpans view(graph, result, worker);
  std::vector<StepParts> steps(view.iterations());
  add_host(view, ends, steps);
  return mean_parts(steps, first).host_busy;
}

StepParts mean_parts(const std::vector<StepParts>& steps, std::size_t first) {
  LOCKSTEP_ASSERT(first < steps.size(), "a mean of no steps");
  const auto count = static_cast<std::int64_t>(steps.size() - first);
  const auto total = [&](auto&& part) {
    Time sum;
    for (std::size_t i = first; i < steps.size(); ++i) sum += part(steps[i]);
    return sum;
  };
  const auto mean = [count](Time sum) {
    return Time::picoseconds(multiply_divide(sum.ps(), 1, count));
  };
  const auto total_of = [&](Part part) {
    return total([part](const StepParts& step) { return step.breakdown.*part; });
  };
  StepParts result;
  Time sum;
  for (Part part : {&Breakdown::compute, &Breakdown::exposed, &Breakdown::waiting, &Breakdown::host,
                    &Breakdown::input, &Breakdown::idle}) {
    const Time before = mean(sum);
    sum += total_of(part);
    result.breakdown.*part = mean(sum) - before;
  }
  result.breakdown.hidden = mean(total_of(&Breakdown::hidden));
  result.host_busy = mean(total([](const StepParts& step) { return step.host_busy; }));
  return result;
}

}  // namespace lockstep
