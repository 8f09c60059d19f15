#include "sim/analysis/timeline.h"

#include <algorithm>

#include "sim/analysis/spans.h"

namespace lockstep {
namespace {

void add_span(Timeline& timeline, const Span& span) {
  if (span.end > span.start) timeline.push_back(span);
}

void add_worker(const TaskGraph& graph, const EngineResult& result, std::uint32_t worker,
                std::uint32_t iteration, Timeline& timeline) {
  const WorkerSpans spans(graph, result, worker);
  const Program& program = spans.program();
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const Task& task = program.tasks[t];
    const TaskSpan& ran = spans.task(iteration, t);
    Span span{.worker = worker,
              .lane = task.lane,
              .kind = task.kind,
              .iteration = iteration,
              .name = graph.names[task.name],
              .start = ran.start,
              .end = ran.end};
    if (task.collective != kNoCollective) {
      Span waiting = span;
      waiting.name += ", waiting";
      waiting.end = spans.collective(iteration, task.collective).transfer_start;
      span.start = waiting.end;
      add_span(timeline, waiting);
    }
    add_span(timeline, span);
  }
}

}  // namespace

Timeline step_timeline(const TaskGraph& graph, const EngineResult& result,
                       std::uint32_t iteration) {
  Timeline timeline;
  for (std::uint32_t worker = 0; worker < graph.program_of_worker.size(); ++worker) {
    add_worker(graph, result, worker, iteration, timeline);
  }
  if (timeline.empty()) return timeline;
  const Time begin = std::ranges::min_element(timeline, {}, &Span::start)->start;
  for (Span& span : timeline) {
    span.start -= begin;
    span.end -= begin;
  }
  return timeline;
}

}  // namespace lockstep
