#include "sim/analysis/spans.h"

#include <numeric>

#include "sim/core/error.h"

namespace lockstep {

WorkerSpans::WorkerSpans(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker)
    : program_(graph.programs[graph.program_of_worker[worker]]),
      result_(result),
      worker_(worker),
      workers_(graph.program_of_worker.size()),
      per_step_(graph.collectives.size()) {
  LOCKSTEP_ASSERT(result.spans_of.value_or(worker) == worker, "a worker whose spans are there");
  for (std::uint32_t w = 0; w < workers_; ++w) {
    if (result.spans_of.value_or(w) != w) continue;
    const std::size_t tasks = graph.programs[graph.program_of_worker[w]].tasks.size();
    if (w < worker) before_ += tasks;
    per_iteration_ += tasks;
  }
  LOCKSTEP_ASSERT(result.tasks.size() == per_iteration_ * iterations(), "a run without its spans");
}

Predecessors::Predecessors(const Program& program) : first(program.tasks.size() + 1, 0) {
  for (std::uint32_t after : program.successors) ++first[after + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  tasks.resize(program.successors.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t before = 0; before < program.tasks.size(); ++before) {
    for (std::uint32_t s = program.first_successor[before]; s < program.first_successor[before + 1];
         ++s) {
      tasks[next[program.successors[s]]++] = before;
    }
  }
}

}  // namespace lockstep
