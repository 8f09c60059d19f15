// Unlike workers, by hand. Comments give the schedule in microseconds.
#include <vector>

#include "sim/core/engine.h"
#include "sim/workload/strategy.h"
#include "tests/catch.h"
#include "tests/synthetic.h"
#include "tests/workload/run_steps.h"

namespace lockstep {
namespace {

/// two_layers(): 600 us forward and backward, optimizer 50. Exchanges of `between` us; what is
/// there takes no time.
Workload workload_of(std::vector<UnlikeWorker> workers, std::int64_t between) {
  Workload workload;
  workload.strategy.kind = "heterogeneous";
  for (std::uint32_t w = 0; w < workers.size(); ++w) {
    workload.profiles.push_back(two_layers());
    workload.profile_of_worker.push_back(w);
  }
  workload.unlike = std::move(workers);
  workload.collective = [between](CollectiveKind kind, Bytes bytes) {
    CollectiveCost cost;
    cost.collective.kind = kind;
    cost.collective.bytes = bytes;
    if (kind == CollectiveKind::all_reduce) cost.collective.duration = us(between);
    return cost;
  };
  return workload;
}

TEST_CASE("gradients added on the host: a worker on cores and another device", "[heterogeneous]") {
  // The other computes until 600 and copies until 640. The cores add 640-670; hosts reduce 670-820.
  // Cores: optimizer until 870. The other copies back until 865, optimizer until 915; its next step
  // is behind at 1515, 1555; sums 1585, 1735; back 1780, 1830.
  Workload workload =
      workload_of({{.cpu = true, .adds = true, .sum = cost(0, 30, 0)},
                   {.cpu = true, .to_sum = cost(0, 40, 0), .from_sum = cost(0, 45, 0)}},
                  150);
  workload.strategy.combine_on_host = true;
  const TaskGraph graph = compile(workload, Phase::steady);
  REQUIRE(graph.collectives.size() == 2);
  CHECK(graph.collectives[1].bytes == Bytes{8 << 20});
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(870), us(1785)});
  CHECK(result.step_end[1] == std::vector<Time>{us(915), us(1830)});
}

TEST_CASE("gradients added on a device: a worker on cores and two others", "[heterogeneous]") {
  // Cores: 600, copy until 645. The first device adds 645-675, both reduce 675-825, optimizer until
  // 875. Cores copy back until 865, optimizer until 915. Next: 1515, 1560; 1590; 1740; 1780, 1830.
  const UnlikeWorker cores{.cpu = true, .to_sum = cost(0, 45, 0), .from_sum = cost(0, 40, 0)};
  const TaskGraph graph = compile(
      workload_of({cores, {.cpu = true, .adds = true, .sum = cost(0, 30, 0)}, {.cpu = true}}, 150),
      Phase::steady);
  const EngineResult result = run_steps(graph, 2);
  CHECK(result.step_end[0] == std::vector<Time>{us(915), us(1830)});
  CHECK(result.step_end[1] == std::vector<Time>{us(875), us(1790)});
  CHECK(result.step_end[2] == result.step_end[1]);
}

TEST_CASE("workers of one kind reduce all gradients at once", "[heterogeneous]") {
  // 600, copied into one array until 680, reduced until 830, optimizer until 880.
  Workload workload = workload_of({}, 150);
  workload.profiles = {two_layers()};
  workload.profile_of_worker = {0, 0, 0};
  workload.cpu = true;
  workload.bucket_in = {"bucket_in", {{Bytes{8 << 20}, 2, us(80), us(0)}}};
  const EngineResult result = run_steps(compile(workload, Phase::steady), 1);
  for (const std::vector<Time>& ends : result.step_end) CHECK(ends.front() == us(880));
}

TEST_CASE("on GPUs the host launches what is combined once the cores' gradients came",
          "[heterogeneous]") {
  // A GPU behind its host: 10 us to launch the first layer, so 610. The cores are there at 645, the
  // host launches until 655, the GPU adds 655-685, its optimizer takes until 735.
  const UnlikeWorker cores{.cpu = true, .to_sum = cost(0, 45, 0), .from_sum = cost(0, 40, 0)};
  Workload workload = workload_of({cores, {.adds = true, .sum = cost(10, 30)}}, 0);
  const EngineResult result = run_steps(compile(workload, Phase::steady), 1);
  // Cores: back until 725, optimizer until 775.
  CHECK(result.step_end[0].front() == us(775));
  CHECK(result.step_end[1].front() == us(735));
}

TEST_CASE("the host of a GPU waits for a sum that is made on the host", "[heterogeneous]") {
  // The GPU: 610, packed until 635, copied until 675. The cores pack until 620, add 675-705, and
  // update until 755. The GPU's host launches the copy back until 715; 760; optimizer until 810.
  Workload workload =
      workload_of({{.cpu = true, .adds = true, .pack = cost(0, 20, 0), .sum = cost(0, 30, 0)},
                   {.pack = cost(10, 25), .to_sum = cost(10, 40), .from_sum = cost(10, 45)}},
                  0);
  workload.strategy.combine_on_host = true;
  const EngineResult result = run_steps(compile(workload, Phase::steady), 1);
  CHECK(result.step_end[0].front() == us(755));
  CHECK(result.step_end[1].front() == us(810));
}

}  // namespace
}  // namespace lockstep
