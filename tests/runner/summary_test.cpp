#include "runner/measure/summary.h"

#include "runner/measure/out_of_memory.h"
#include "tests/catch.h"

namespace lockstep::runner {

TEST_CASE("The table of a visit shows what was measured and what did not fit") {
  Run run;
  run.model = "resnet50";
  run.batch_per_worker = 128;
  run.workers = 4;
  run.strategy.kind = "ddp";
  run.precision = "bf16";
  run.graph = true;
  RunRepeat repeat;
  repeat.step.p50 = Time::microseconds(12'345);
  run.repeats = {repeat, repeat};
  run.parity = Parity{.relative_l2 = 2e-8, .steps = 3};
  Run full = run;
  full.batch_per_worker = 2048;
  full.repeats.clear();
  full = out_of_memory(std::move(full), 3);

  const std::string table = run_table({run, full});
  CHECK_THAT(table, Contains("resnet50             128 bf16 ddp             4 graph  step   12.345 "
                             "ms        2  2.0e-08\n"));
  CHECK_THAT(
      table,
      Contains(
          "resnet50            2048 bf16 ddp             4 graph  step  out of memory (rank 3)\n"));
}

}  // namespace lockstep::runner
