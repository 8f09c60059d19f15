// The engine against independent code, over random graphs.
#include <algorithm>
#include <tuple>

#include "sim/core/engine.h"
#include "tests/catch.h"
#include "tests/core/naive_simulator.h"
#include "tests/core/random_graph.h"

namespace lockstep {
namespace {

using testing::NaiveSimulator;
using testing::random_graph;
using testing::RandomGraph;

/// Where nothing is shared, every start follows from what comes earlier in program order: one sweep
/// computes them all, the workers taking turns from one collective to the next.
class ForwardSweep {
 public:
  explicit ForwardSweep(const RandomGraph& random) : random_(random) {}

  std::vector<TaskSpan> run(std::uint32_t iterations) {
    const std::size_t workers = random_.graph.program_of_worker.size();
    lane_free_.resize(workers);
    step_end_.assign(workers, std::vector<Time>(iterations));
    for (std::uint32_t k = 0; k < iterations; ++k) sweep_iteration(k);
    return spans_;
  }

 private:
  const Program& program(std::uint32_t w) const {
    return random_.graph.programs[random_.graph.program_of_worker[w]];
  }

  void sweep_iteration(std::uint32_t k) {
    const auto workers = static_cast<std::uint32_t>(lane_free_.size());
    place_.assign(workers, 0);
    ready_.clear();
    for (std::uint32_t w = 0; w < workers; ++w) {
      const Time window = k >= kIterationWindow ? step_end_[w][k - kIterationWindow] : Time();
      ready_.emplace_back(program(w).tasks.size(), window);
    }
    for (std::size_t stage = 0; stage <= random_.graph.collectives.size(); ++stage) {
      std::vector<TaskSpan> launched;
      Time last;
      for (std::uint32_t w = 0; w < workers; ++w) {
        if (const auto span = run_to_collective(w, k)) launched.push_back(*span);
        if (!launched.empty()) last = std::max(last, launched.back().start);
      }
      for (TaskSpan& span : launched) {
        const std::int32_t c = program(span.worker).tasks[span.task].collective;
        span.end = last + random_.graph.collectives[static_cast<std::size_t>(c)].duration;
        finish(span);
      }
    }
  }

  std::optional<TaskSpan> run_to_collective(std::uint32_t w, std::uint32_t k) {
    const auto& order = random_.program_order[random_.graph.program_of_worker[w]];
    while (place_[w] < order.size()) {
      const std::uint32_t task = order[place_[w]++];
      const Task& t = program(w).tasks[task];
      const Time start = std::max(ready_[w][task], lane_free_[w][static_cast<std::size_t>(t.lane)]);
      const TaskSpan span{w, k, task, start, start + t.work};
      if (t.collective != kNoCollective) return span;
      finish(span);
    }
    return std::nullopt;
  }

  void finish(const TaskSpan& span) {
    const Program& p = program(span.worker);
    lane_free_[span.worker][static_cast<std::size_t>(p.tasks[span.task].lane)] = span.end;
    Time& step_end = step_end_[span.worker][span.iteration];
    step_end = std::max(step_end, span.end);
    for (auto s = p.first_successor[span.task]; s < p.first_successor[span.task + 1]; ++s) {
      Time& ready = ready_[span.worker][p.successors[s]];
      ready = std::max(ready, span.end);
    }
    spans_.push_back(span);
  }

  const RandomGraph& random_;
  std::vector<std::array<Time, kLanes>> lane_free_;
  std::vector<std::vector<Time>> step_end_, ready_;
  std::vector<std::size_t> place_;
  std::vector<TaskSpan> spans_;
};

std::vector<TaskSpan> sorted(std::vector<TaskSpan> spans) {
  std::sort(spans.begin(), spans.end(), [](const TaskSpan& a, const TaskSpan& b) {
    return std::tie(a.iteration, a.worker, a.task) < std::tie(b.iteration, b.worker, b.task);
  });
  return spans;
}

TEST_CASE("where nothing is shared the engine equals a forward sweep") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const RandomGraph random = random_graph(seed, {.collectives = static_cast<int>(seed % 5)});
    EngineOptions options;
    options.iterations = 7;
    options.record_spans = true;
    REQUIRE(run(random.graph, options).tasks == sorted(ForwardSweep(random).run(7)));
  }
}

void require_equal_to_naive(const TaskGraph& graph, const EngineOptions& options) {
  const EngineResult engine = run(graph, options);
  const EngineResult naive = NaiveSimulator(graph, options).run();
  REQUIRE(engine.tasks == naive.tasks);
  REQUIRE(engine.step_end == naive.step_end);
  REQUIRE(engine.completed_tasks == naive.completed_tasks);
}

TEST_CASE("where rates are the engine equals a naive simulator") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    EngineOptions options;
    options.iterations = 6;
    options.record_spans = true;
    require_equal_to_naive(random_graph(seed, {.rates = true}).graph, options);
  }
}

TEST_CASE("with a launch queue, slow workers and noise the engine equals a naive simulator") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    TaskGraph graph = random_graph(seed, {.rates = true, .launch_queue = true}).graph;
    for (Program& program : graph.programs) {
      for (Task& task : program.tasks) task.work = task.work * 1000;
    }
    for (Collective& collective : graph.collectives)
      collective.duration = collective.duration * 1000;
    EngineOptions options;
    options.iterations = 6;
    options.record_spans = true;
    options.seed = seed;
    if (seed % 2 == 0) options.noise = {0.1, 0.1, seed % 4 == 0 ? 0.2 : 0.0};
    options.slowdowns.resize(graph.program_of_worker.size());
    options.slowdowns.back() = {Factor::of(1.3), Factor::of(1.6)};
    require_equal_to_naive(graph, options);
  }
}

}  // namespace
}  // namespace lockstep
