#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

namespace lockstep::runner {

// Simonyan & Zisserman 2014, configuration D, with torchvision's names; as for timing elsewhere in
// this zoo without dropout, which would make runs incomparable.
Model vgg16() {
  constexpr int kPool = 0, kHidden = 4096;
  Model model("vgg16", {3, 224, 224}, 1000);
  int x = Model::kInput;
  int channels = 3;
  int index = 0;  // numbers layers as torch.nn.Sequential does
  const auto name = [&index] { return "features." + std::to_string(index++); };
  for (const int out : {64, 64, kPool, 128, 128, kPool, 256, 256, 256, kPool, 512, 512, 512, kPool,
                        512, 512, 512, kPool}) {
    if (out == kPool) {
      x = add_max_pool(model, name(), x, 2, 2);
      continue;
    }
    x = add_conv(model, name(), x, {.in = channels, .out = out});
    x = add_relu(model, name(), x);
    channels = out;
  }
  x = add_linear(model, "classifier.0", x, 512 * 7 * 7, kHidden);
  x = add_relu(model, "classifier.1", x);
  x = add_linear(model, "classifier.3", x, kHidden, kHidden);
  x = add_relu(model, "classifier.4", x);
  x = add_linear(model, "classifier.6", x, kHidden, model.classes());
  add_cross_entropy(model, x);
  return model;
}

}  // namespace lockstep::runner
