#include <c10/core/Device.h>

#include "runner/models/zoo.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

TEST_CASE("ResNets have the published numbers of parameters") {
  // torchvision's resnet50; resnet18 with a 3x3 stem and ten classes.
  CHECK(make_model("resnet50", c10::kCPU, 1).parameter_count() == 25'557'032);
  CHECK(make_model("resnet18_cifar", c10::kCPU, 1).parameter_count() == 11'173'962);
}

}  // namespace
}  // namespace lockstep::runner
