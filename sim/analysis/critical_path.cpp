#include "sim/analysis/critical_path.h"

#include <algorithm>
#include <optional>

#include "sim/analysis/spans.h"

namespace lockstep {
namespace {

/// A task of one worker in one iteration.
struct Place {
  std::uint32_t worker = 0, iteration = 0, task = 0;
};

class PathFinder {
 public:
  PathFinder(const TaskGraph& graph, const EngineResult& result) : graph_(graph) {
    for (std::uint32_t w = 0; w < graph.program_of_worker.size(); ++w) {
      spans_.emplace_back(graph, result, w);
    }
    for (const Program& program : graph.programs) before_.emplace_back(program);
  }

  /// The last task of the iteration to end.
  Place last(std::uint32_t iteration) const {
    Place latest{.worker = 0, .iteration = iteration, .task = 0};
    for (std::uint32_t w = 0; w < spans_.size(); ++w) {
      for (std::uint32_t t = 0; t < spans_[w].program().tasks.size(); ++t) {
        const Place place{.worker = w, .iteration = iteration, .task = t};
        if (span(place).end > span(latest).end) latest = place;
      }
    }
    return latest;
  }

  /// From when on the task made progress of its own.
  Time start(const Place& place) const {
    const std::int32_t collective = task(place).collective;
    if (collective == kNoCollective) return span(place).start;
    return spans_[place.worker].collective(place.iteration, collective).transfer_start;
  }
  Time end(const Place& place) const { return span(place).end; }

  /// What ended when this task started, and so let it start; none at time zero.
  std::optional<Place> cause(Place place) const {
    place = last_to_launch(place);
    const Time began = span(place).start;
    for (const Place& candidate : dependencies(place)) {
      if (end(candidate) == began) return candidate;
    }
    return began > Time{} ? ended_at(place, began) : std::nullopt;
  }

 private:
  const TaskSpan& span(const Place& place) const {
    return spans_[place.worker].task(place.iteration, place.task);
  }
  const Task& task(const Place& place) const {
    return spans_[place.worker].program().tasks[place.task];
  }

  Place last_to_launch(const Place& place) const {
    const std::int32_t collective = task(place).collective;
    if (collective == kNoCollective) return place;
    for (std::uint32_t w = 0; w < spans_.size(); ++w) {
      if (spans_[w].collective(place.iteration, collective).launch != start(place)) continue;
      const std::vector<Task>& tasks = spans_[w].program().tasks;
      const auto held = std::ranges::find(tasks, collective, &Task::collective);
      return {.worker = w,
              .iteration = place.iteration,
              .task = static_cast<std::uint32_t>(held - tasks.begin())};
    }
    return place;
  }

  /// By edges, and by the order of the lane.
  std::vector<Place> dependencies(const Place& place) const {
    const Program& program = spans_[place.worker].program();
    const Predecessors& before = before_[graph_.program_of_worker[place.worker]];
    std::vector<Place> result;
    for (std::uint32_t p = before.first[place.task]; p < before.first[place.task + 1]; ++p) {
      result.push_back({place.worker, place.iteration, before.tasks[p]});
    }
    const auto lane = static_cast<std::size_t>(program.tasks[place.task].lane);
    if (place.task > program.lane_begin[lane]) {
      result.push_back({place.worker, place.iteration, place.task - 1});
    } else if (place.iteration > 0) {
      result.push_back({place.worker, place.iteration - 1, program.lane_begin[lane + 1] - 1});
    }
    return result;
  }

  /// Room on the launch queue, or an iteration that had to be over: some task of the worker.
  std::optional<Place> ended_at(const Place& place, Time time) const {
    const std::size_t tasks = spans_[place.worker].program().tasks.size();
    for (std::uint32_t iteration = place.iteration + 1; iteration-- > 0;) {
      for (std::uint32_t t = 0; t < tasks; ++t) {
        const Place candidate{.worker = place.worker, .iteration = iteration, .task = t};
        if (end(candidate) == time && span(candidate).start < time) return candidate;
      }
    }
    return std::nullopt;
  }

  const TaskGraph& graph_;
  std::vector<WorkerSpans> spans_;
  std::vector<Predecessors> before_;
};

Time end_of_iteration(const EngineResult& result, std::uint32_t iteration) {
  Time latest;
  for (const std::vector<Time>& worker : result.step_end) {
    latest = std::max(latest, worker[iteration]);
  }
  return latest;
}

}  // namespace

std::vector<PathStep> critical_path(const TaskGraph& graph, const EngineResult& result,
                                    std::uint32_t iteration) {
  const PathFinder finder(graph, result);
  const Time begin = iteration == 0 ? Time{} : end_of_iteration(result, iteration - 1);
  std::vector<PathStep> path;
  for (std::optional<Place> place = finder.last(iteration); place; place = finder.cause(*place)) {
    const Time start = finder.start(*place);
    const Time end = finder.end(*place);
    if (end > start) path.push_back({place->worker, place->iteration, place->task, start, end});
    if (start <= begin) break;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace lockstep
