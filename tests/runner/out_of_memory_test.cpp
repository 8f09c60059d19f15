#include "runner/measure/out_of_memory.h"

#include <c10/util/Exception.h>

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {

namespace {

const c10::SourceLocation kHere{"test", __FILE__, __LINE__};

}  // namespace

TEST_CASE("Work for which memory does not suffice is told from work that fails") {
  CHECK(fits_in_memory([] {}));
  CHECK_FALSE(fits_in_memory([] { throw c10::OutOfMemoryError(kHere, "no room"); }));
  CHECK_FALSE(fits_in_memory(
      [] { throw RunError("copying: CUDA: out of memory (cudaErrorMemoryAllocation)"); }));
  CHECK_FALSE(fits_in_memory([] { throw RunError("CUBLAS_STATUS_ALLOC_FAILED when creating"); }));
  CHECK_THROWS_AS(fits_in_memory([] { throw RunError("a peer did not answer"); }), RunError);
  CHECK_THROWS_AS(fits_in_memory([] { throw c10::Error(kHere, "sizes do not match"); }),
                  c10::Error);
}

TEST_CASE("A run that did not fit says so and has no steps") {
  Run run;
  run.model = "vgg16";
  run.batch_per_worker = 2048;
  const Run failed = out_of_memory(run, 2);
  REQUIRE(failed.failure);
  CHECK(failed.failure->rank == 2);
  CHECK(failed.failure->what == "out of memory");
  CHECK(failed.failure->after_steps == 0);
  CHECK(failed.repeats.empty());
  CHECK(failed.batch_per_worker == 2048);
}

}  // namespace lockstep::runner
