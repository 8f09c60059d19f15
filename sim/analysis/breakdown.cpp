#include "sim/analysis/breakdown.h"

#include <algorithm>

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
    from = std::max(from, last_);
    while (from < to && step_ < step_end_.size()) {
      const Time cut = std::min(to, step_end_[step_]);
      if (cut > from) to_step(step_, cut - from);
      from = std::max(from, cut);
      if (from == step_end_[step_] && from < to) ++step_;
    }
    last_ = std::max(last_, from);
  }

 private:
  const std::vector<Time>& step_end_;
  std::size_t step_ = 0;
  Time last_;
};

/// The dependencies of compute tasks on other lanes that explain why they are late.
struct Causes {
  std::vector<std::vector<std::uint32_t>> issue, input;  ///< by task of the program
};

Causes causes_of(const Program& program) {
  Causes causes;
  causes.issue.resize(program.tasks.size());
  causes.input.resize(program.tasks.size());
  for (std::uint32_t before = 0; before < program.tasks.size(); ++before) {
    const Lane lane = program.tasks[before].lane;
    for (std::uint32_t s = program.first_successor[before]; s < program.first_successor[before + 1];
         ++s) {
      const std::uint32_t after = program.successors[s];
      if (program.tasks[after].lane != Lane::compute) continue;
      if (lane == Lane::host) causes.issue[after].push_back(before);
      if (lane == Lane::copy || lane == Lane::loader) causes.input[after].push_back(before);
    }
  }
  return causes;
}

/// One worker's part of a result.
class WorkerView {
 public:
  WorkerView(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker)
      : result_(result), worker_(worker), workers_(graph.program_of_worker.size()) {
    for (std::uint32_t w = 0; w < workers_; ++w) {
      const std::size_t tasks = graph.programs[graph.program_of_worker[w]].tasks.size();
      if (w < worker) before_ += tasks;
      per_iteration_ += tasks;
    }
    collectives_ = graph.collectives.size();
  }

  const TaskSpan& task(std::size_t iteration, std::uint32_t task) const {
    return result_.tasks[iteration * per_iteration_ + before_ + task];
  }
  /// In the order in which they ran.
  const CollectiveSpan& collective(std::size_t index) const {
    return result_.collectives[index * workers_ + worker_];
  }
  std::size_t collectives() const { return result_.collectives.size() / workers_; }
  const std::vector<Time>& step_end() const { return result_.step_end[worker_]; }

 private:
  const EngineResult& result_;
  std::uint32_t worker_;
  std::size_t workers_, collectives_ = 0, per_iteration_ = 0, before_ = 0;
};

/// Walks along the compute lane and puts a name to every moment.
class Classifier {
 public:
  Classifier(const WorkerView& view, std::vector<StepParts>& steps)
      : view_(view), steps_(steps), sums_(view.step_end()) {}

  void busy(Time from, Time to) { add(from, to, &Breakdown::compute); }

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

  const WorkerView& view_;
  std::vector<StepParts>& steps_;
  StepSums sums_;
  std::size_t collective_ = 0;  ///< the first that may not have ended yet
};

/// Communication beside busy stretches of the compute lane, both in order.
void add_hidden(const WorkerView& view, const std::vector<std::pair<Time, Time>>& busy,
                std::vector<StepParts>& steps) {
  StepSums sums(view.step_end());
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

void add_host(const WorkerView& view, const Program& program, std::vector<StepParts>& steps) {
  constexpr auto kHost = static_cast<std::size_t>(Lane::host);
  StepSums sums(view.step_end());
  for (std::size_t iteration = 0; iteration < steps.size(); ++iteration) {
    for (std::uint32_t t = program.lane_begin[kHost]; t < program.lane_begin[kHost + 1]; ++t) {
      const TaskSpan& span = view.task(iteration, t);
      sums.add(span.start, span.end,
               [&](std::size_t step, Time time) { steps[step].host_busy += time; });
    }
  }
}

Time latest_end(const WorkerView& view, std::size_t iteration,
                const std::vector<std::uint32_t>& tasks) {
  Time latest;
  for (std::uint32_t task : tasks) latest = std::max(latest, view.task(iteration, task).end);
  return latest;
}

}  // namespace

std::vector<StepParts> break_down(const TaskGraph& graph, const EngineResult& result,
                                  std::uint32_t worker) {
  constexpr auto kCompute = static_cast<std::size_t>(Lane::compute);
  LOCKSTEP_ASSERT(!result.tasks.empty(), "a breakdown needs recorded spans");
  const Program& program = graph.programs[graph.program_of_worker[worker]];
  const WorkerView view(graph, result, worker);
  const Causes causes = causes_of(program);
  std::vector<StepParts> steps(view.step_end().size());
  std::vector<std::pair<Time, Time>> busy;
  Classifier classify(view, steps);
  Time now;
  for (std::size_t iteration = 0; iteration < steps.size(); ++iteration) {
    for (std::uint32_t t = program.lane_begin[kCompute]; t < program.lane_begin[kCompute + 1];
         ++t) {
      const TaskSpan& span = view.task(iteration, t);
      classify.gap(now, span.start, latest_end(view, iteration, causes.issue[t]),
                   latest_end(view, iteration, causes.input[t]));
      classify.busy(span.start, span.end);
      if (span.end > span.start) busy.emplace_back(span.start, span.end);
      now = span.end;
    }
  }
  // What follows the last compute task of all is the host's: it has nothing more to issue.
  classify.gap(now, view.step_end().back(), view.step_end().back(), Time{});
  add_hidden(view, busy, steps);
  add_host(view, program, steps);
  return steps;
}

StepParts mean_parts(const std::vector<StepParts>& steps, std::size_t first) {
  LOCKSTEP_ASSERT(first < steps.size(), "a mean of no steps");
  const auto count = static_cast<std::int64_t>(steps.size() - first);
  const auto mean = [&](auto&& part) {
    Time sum;
    for (std::size_t i = first; i < steps.size(); ++i) sum += part(steps[i]);
    return Time::picoseconds(multiply_divide(sum.ps(), 1, count));
  };
  StepParts result;
  for (Part part : {&Breakdown::compute, &Breakdown::exposed, &Breakdown::waiting, &Breakdown::host,
                    &Breakdown::input, &Breakdown::idle, &Breakdown::hidden}) {
    result.breakdown.*part = mean([part](const StepParts& step) { return step.breakdown.*part; });
  }
  result.host_busy = mean([](const StepParts& step) { return step.host_busy; });
  return result;
}

}  // namespace lockstep
