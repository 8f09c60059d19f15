#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/engine.h"
#include "sim/core/task_graph.h"

namespace lockstep {

/// One worker's part of a run with recorded spans. Refers to both, which must outlive it.
class WorkerSpans {
 public:
  WorkerSpans(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker);

  const Program& program() const { return program_; }
  std::size_t iterations() const { return result_.step_end[worker_].size(); }
  const std::vector<Time>& step_end() const { return result_.step_end[worker_]; }
  const TaskSpan& task(std::size_t iteration, std::uint32_t task) const {
    return result_.tasks[iteration * per_iteration_ + before_ + task];
  }
  /// The worker's collectives of all iterations, in the order in which they ran.
  std::size_t collectives() const { return result_.collectives.size() / workers_; }
  const CollectiveSpan& collective(std::size_t index) const {
    return result_.collectives[index * workers_ + worker_];
  }
  const CollectiveSpan& collective(std::size_t iteration, std::int32_t collective) const {
    return this->collective(iteration * per_step_ + static_cast<std::size_t>(collective));
  }

 private:
  const Program& program_;
  const EngineResult& result_;
  std::size_t worker_, workers_;
  std::size_t per_step_;                        ///< collectives
  std::size_t per_iteration_ = 0, before_ = 0;  ///< tasks of all workers, of workers before
};

/// Predecessors of every task by the edges of a program, in CSR form.
struct Predecessors {
  std::vector<std::uint32_t> first, tasks;
  explicit Predecessors(const Program& program);
};

}  // namespace lockstep
