#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/noise.h"

namespace lockstep::testing {

/// The engine's semantics with neither heap nor counters nor wake-ups: in every instant, look at
/// everything again until nothing changes; then settle rates; then jump to the earliest end.
/// Collectives by table only.
class NaiveSimulator {
 public:
  NaiveSimulator(const TaskGraph& graph, const EngineOptions& options)
      : graph_(graph), options_(options), factors_(options) {
    for (std::uint32_t w = 0; w < graph.program_of_worker.size(); ++w) {
      Worker worker;
      worker.program = &graph.programs[graph.program_of_worker[w]];
      worker.done.assign(options.iterations,
                         std::vector<std::optional<TaskSpan>>(worker.program->tasks.size()));
      workers_.push_back(worker);
    }
    result_.step_end.assign(workers_.size(), std::vector<Time>(options.iterations));
  }

  EngineResult run() {
    for (;;) {
      while (end_something() || start_something()) {
      }
      settle();
      Time next = kNever;
      each_running([&](Running& running) { next = std::min(next, running.end); });
      if (next == kNever) break;
      now_ = next;
    }
    for (std::uint32_t k = 0; k < options_.iterations; ++k) {
      for (std::uint32_t w = 0; w < workers_.size(); ++w) {
        for (const auto& span : workers_[w].done[k]) result_.tasks.push_back(span.value());
      }
    }
    return result_;
  }

 private:
  static constexpr Time kNever = Time::picoseconds(std::numeric_limits<std::int64_t>::max());
  struct Running {
    std::uint32_t worker, task, iteration;
    Time start, end = kNever, work;
    Time begun;       ///< when `work` began: a collective's with its transfer
    Factor slowdown;  ///< raw zero: not yet settled
    bool transferring = false;
  };
  struct Worker {
    const Program* program = nullptr;
    std::vector<std::vector<std::optional<TaskSpan>>> done;  ///< by iteration, task
    std::optional<Running> lanes[kLanes];
  };

  template <typename Visit>
  void each_running(Visit visit) {
    for (Worker& worker : workers_) {
      for (auto& running : worker.lanes) {
        if (running) visit(*running);
      }
    }
  }

  bool finished(const Worker& worker, std::uint32_t iteration) const {
    const auto& done = worker.done[iteration];
    return std::all_of(done.begin(), done.end(), [](const auto& span) { return span.has_value(); });
  }

  bool end_something() {
    for (std::uint32_t w = 0; w < workers_.size(); ++w) {
      for (auto& running : workers_[w].lanes) {
        if (!running || running->end != now_) continue;
        const Running ended = *running;
        running.reset();
        workers_[w].done[ended.iteration][ended.task] =
            TaskSpan{w, ended.iteration, ended.task, ended.start, now_};
        ++result_.completed_tasks;
        if (finished(workers_[w], ended.iteration)) result_.step_end[w][ended.iteration] = now_;
        return true;
      }
    }
    return false;
  }

  /// The first task of a lane that has neither ended nor runs, if it may start now.
  std::optional<Running> head(std::uint32_t w, std::uint32_t lane) const {
    const Worker& worker = workers_[w];
    if (worker.lanes[lane]) return std::nullopt;
    for (std::uint32_t k = 0; k < options_.iterations; ++k) {
      if (k >= kIterationWindow && !finished(worker, k - kIterationWindow)) return std::nullopt;
      for (std::uint32_t t = worker.program->lane_begin[lane];
           t < worker.program->lane_begin[lane + 1]; ++t) {
        if (worker.done[k][t]) continue;
        if (!ready(worker, k, t) || !fits_queue(worker, t)) return std::nullopt;
        return Running{w, t, k, now_, kNever, Time(), now_, Factor::of(0), false};
      }
    }
    return std::nullopt;
  }

  static bool ready(const Worker& worker, std::uint32_t k, std::uint32_t task) {
    const Program& program = *worker.program;
    for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
      for (std::uint32_t s = program.first_successor[t]; s < program.first_successor[t + 1]; ++s) {
        if (program.successors[s] == task && !worker.done[k][t]) return false;
      }
    }
    return true;
  }

  static bool is_running(const Worker& worker, std::uint32_t k, std::uint32_t task) {
    return std::any_of(std::begin(worker.lanes), std::end(worker.lanes), [&](const auto& running) {
      return running && running->iteration == k && running->task == task;
    });
  }

  /// Kernels issued (their issue has started) whose device task has not ended.
  bool fits_queue(const Worker& worker, std::uint32_t task) const {
    const Program& program = *worker.program;
    const std::uint32_t launches = program.tasks[task].launches;
    if (launches == 0 || graph_.launch_queue == 0) return true;
    std::uint32_t queued = 0;
    for (std::uint32_t k = 0; k < options_.iterations; ++k) {
      for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
        if (program.tasks[t].launches == 0) continue;
        if (!worker.done[k][t] && !is_running(worker, k, t)) continue;
        std::uint32_t s = program.first_successor[t];
        while (program.tasks[program.successors[s]].lane == Lane::host) ++s;
        if (!worker.done[k][program.successors[s]]) queued += program.tasks[t].launches;
      }
    }
    return queued == 0 || queued + launches <= graph_.launch_queue;
  }

  bool start_something() {
    for (std::uint32_t w = 0; w < workers_.size(); ++w) {
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        std::optional<Running> running = head(w, lane);
        if (!running) continue;
        const Task& task = workers_[w].program->tasks[running->task];
        if (task.collective == kNoCollective) {
          const Slowdown slow = factors_.worker(w, running->iteration);
          const bool host = task.lane == Lane::host || task.lane == Lane::loader;
          const Factor noise = factors_.task(w, running->iteration, running->task);
          running->work = scale(task.work, (host ? slow.host : slow.device) * noise);
          if (running->work == Time()) running->end = now_;
        }
        workers_[w].lanes[lane] = running;
        return true;
      }
    }
    return start_transfer();
  }

  bool start_transfer() {
    const auto lane = static_cast<std::size_t>(Lane::communication);
    for (const Worker& worker : workers_) {
      if (!worker.lanes[lane] || worker.lanes[lane]->transferring) return false;
      const Running& mine = *worker.lanes[lane];
      const Running& first = *workers_.front().lanes[lane];
      if (collective_of(mine) == kNoCollective || collective_of(mine) != collective_of(first) ||
          mine.iteration != first.iteration) {
        return false;
      }
    }
    for (Worker& worker : workers_) {
      Running& mine = *worker.lanes[lane];
      const auto c = static_cast<std::uint32_t>(collective_of(mine));
      mine.transferring = true;
      mine.work = scale(graph_.collectives[c].duration, factors_.collective(mine.iteration, c));
      mine.begun = now_;
      if (mine.work == Time()) mine.end = now_;
    }
    return true;
  }

  std::int32_t collective_of(const Running& running) const {
    return workers_[running.worker].program->tasks[running.task].collective;
  }

  Factor slowdown(const Running& running) const {
    const Task& task = workers_[running.worker].program->tasks[running.task];
    const auto& communication =
        workers_[running.worker].lanes[static_cast<std::size_t>(Lane::communication)];
    if (task.collective != kNoCollective) {
      const auto computes = [](const Worker& worker) {
        return worker.lanes[static_cast<std::size_t>(Lane::compute)].has_value();
      };
      return std::any_of(workers_.begin(), workers_.end(), computes)
                 ? graph_.collective_beside_compute *
                       graph_.collectives[task.collective].beside_compute
                 : Factor{};
    }
    const bool beside = communication && collective_of(*communication) != kNoCollective;
    if (task.lane != Lane::compute || !beside) return Factor{};
    const Interference& slowed = graph_.interference[task.interference];
    if (!communication->transferring) return slowed.waiting;
    return in_part(slowed.transferring, graph_.collectives[collective_of(*communication)].working);
  }

  void settle() {
    each_running([&](Running& running) {
      if (collective_of(running) != kNoCollective && !running.transferring) return;
      const Factor now_slowed = slowdown(running);
      if (running.slowdown == now_slowed) return;
      if (running.begun == now_) {
        running.end = now_ + scale(running.work, now_slowed);
      } else {
        const Time left = running.end - now_;
        running.end = now_ + Time::picoseconds(multiply_divide(
                                 left.ps(), static_cast<std::int64_t>(now_slowed.raw()),
                                 static_cast<std::int64_t>(running.slowdown.raw())));
      }
      running.slowdown = now_slowed;
    });
  }

  const TaskGraph& graph_;
  const EngineOptions& options_;
  const WorkFactors factors_;
  std::vector<Worker> workers_;
  EngineResult result_;
  Time now_;
};

}  // namespace lockstep::testing
