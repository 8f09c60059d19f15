#include "sim/workload/workload.h"
#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {

TEST_CASE("every layer that normalises over the batch has a counter beside its buffers") {
  Profile profile;
  const auto add = [&profile](const char* kind, Bytes buffers) {
    profile.layers.push_back(layer(kind, kind, cost(1, 1), cost(1, 1), Bytes{8}, buffers));
  };
  add("norm", Bytes{1024});
  add("conv_norm", Bytes{512});
  add("norm", Bytes{});  // layer normalisation keeps nothing
  add("quantised", Bytes{64});
  const BufferBytes buffers = buffer_bytes(profile);
  CHECK(buffers.floats == Bytes{1600});
  CHECK(buffers.counters == Bytes{16});
}

}  // namespace lockstep
