#include "sim/analysis/buckets.h"

#include <algorithm>

#include "sim/analysis/spans.h"

namespace lockstep {

std::vector<BucketTimes> bucket_times(const TaskGraph& graph, const EngineResult& result,
                                      std::uint32_t worker) {
  const WorkerSpans spans(graph, result, worker);
  const Program& program = spans.program();
  const Predecessors before(program);
  const std::size_t last = spans.iterations() - 1;
  const Time begin = last == 0 ? Time{} : spans.step_end()[last - 1];
  // Where gradients are reduced to rank 0, what is gathered and scattered are the network's
  // outputs.
  const bool reduces = std::ranges::any_of(graph.collectives, [](const Collective& collective) {
    return collective.kind == CollectiveKind::reduce;
  });
  std::vector<BucketTimes> buckets;
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const std::int32_t index = program.tasks[t].collective;
    if (index == kNoCollective || program.tasks[t].kind != TaskKind::collective) continue;
    const Collective& collective = graph.collectives[static_cast<std::size_t>(index)];
    const CollectiveKind kind = collective.kind;
    if (!reduces && kind == CollectiveKind::scatter && !buckets.empty()) {
      buckets.back().done = spans.collective(last, index).end - begin;
      continue;
    }
    const bool starts = reduces
                            ? kind == CollectiveKind::reduce
                            : kind == CollectiveKind::all_reduce || kind == CollectiveKind::gather;
    if (!starts) continue;
    Time ready = begin;
    for (std::uint32_t p = before.first[t]; p < before.first[t + 1]; ++p) {
      const Task& queued_behind = program.tasks[before.tasks[p]];
      if (queued_behind.lane != Lane::compute) continue;
      const TaskSpan& ran = spans.task(last, before.tasks[p]);
      const bool copies = queued_behind.kind == TaskKind::bucket_copy;
      ready = std::max(ready, copies ? ran.start : ran.end);
    }
    const CollectiveSpan& span = spans.collective(last, index);
    buckets.push_back({.bytes = collective.bytes,
                       .ready = ready - begin,
                       .launch = span.launch - begin,
                       .done = span.end - begin});
  }
  return buckets;
}

}  // namespace lockstep
