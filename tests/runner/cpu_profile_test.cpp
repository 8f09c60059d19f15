#include "runner/measure/cpu_profile.h"

#include "sim/records/profile.h"
#include "tests/catch.h"

namespace lockstep::runner {

TEST_CASE("A worker on cores is profiled in blocks, and the parts of its step add up") {
  const auto device = make_cpu_device(1);
  ReferenceKernel reference(*device);
  int beats = 0;
  CpuProfile profile("small_cnn", 2, Precision::fp32, 1, *device, reference, [&] { ++beats; });
  const int warm = beats;
  profile.sample(Time::microseconds(1));
  profile.sample(Time::microseconds(1));
  const ProfileSample sample = profile.finish(4, 3);
  CHECK(sample.process == 4);
  CHECK(sample.rank == 3);
  CHECK(sample.steps.size() == static_cast<std::size_t>(beats - warm));
  CHECK(sample.steps.size() >= 6);  // at least three a block
  CHECK(sample.speed_index.before > Time{});
  CHECK(sample.profile.batch == 2);
  CHECK(sample.profile.device == "1 thread");
  CHECK(parameter_bytes(sample.profile) == Bytes{114'186 * 4});
  Time sum;
  Profile costs = sample.profile;
  for_each_cost(costs, [&sum](Cost& cost) {
    CHECK(cost.host == Time{});
    sum += cost.device;
  });
  CHECK(sum.seconds() > sample.profile.step.seconds() * 0.3);
  CHECK(sum.seconds() < sample.profile.step.seconds() * 3);
}

}  // namespace lockstep::runner
