#include "sim/core/compiled_program.h"

#include "sim/core/error.h"

namespace lockstep {

CompiledProgram compile(const TaskGraph& graph, const Program& program) {
  LOCKSTEP_ASSERT(program.tasks.size() <= kTaskMask, "a program has fewer than 2^29 tasks");
  CompiledProgram compiled;
  compiled.lane_begin = program.lane_begin;
  compiled.tasks.resize(program.tasks.size());
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    CompiledTask& c = compiled.tasks[t];
    const Interference& slowed = graph.interference[task.interference];
    const bool disturbed = slowed.waiting != Factor{} || slowed.transferring != Factor{};
    c.work = task.collective == kNoCollective ? task.work.ps() : 0;
    if (task.drawn > 0) c.work = -std::int64_t{task.drawn};
    c.first_successor = program.first_successor[t];
    c.last_successor = program.first_successor[t + 1];
    c.dependencies = program.dependency_count[t];
    c.collective = task.collective;
    c.launches = graph.launch_queue > 0 ? task.launches : std::uint16_t{0};
    c.interference = task.lane == Lane::compute && disturbed ? task.interference : std::uint16_t{0};
    bool worked_off = c.launches == 0;
    for (std::uint32_t s = c.first_successor; s < c.last_successor; ++s) {
      const std::uint32_t successor = program.successors[s];
      const auto lane = static_cast<std::uint32_t>(program.tasks[successor].lane);
      compiled.successors.push_back(lane << kLaneShift | successor);
      if (!worked_off && program.tasks[successor].lane != Lane::host) {
        compiled.tasks[successor].frees += c.launches;
        worked_off = true;
      }
    }
  }
  return compiled;
}

}  // namespace lockstep
