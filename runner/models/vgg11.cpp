#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

namespace lockstep::runner {

// Simonyan & Zisserman 2014, configuration A, as the CS744 assignment has it for 32x32 images: with
// batch normalisation and one linear layer.
Model vgg11() {
  constexpr int kPool = 0;
  Model model("vgg11", {3, 32, 32}, 10);
  int x = Model::kInput;
  int channels = 3;
  int index = 0;  // numbers layers as torch.nn.Sequential does
  const auto name = [&index] { return "features." + std::to_string(index++); };
  for (const int out : {64, kPool, 128, kPool, 256, 256, kPool, 512, 512, kPool, 512, 512, kPool}) {
    if (out == kPool) {
      x = add_max_pool(model, name(), x, 2, 2);
      continue;
    }
    x = add_conv(model, name(), x, {.in = channels, .out = out});
    x = add_norm(model, name(), x, out);
    x = add_relu(model, name(), x);
    channels = out;
  }
  x = add_linear(model, "classifier", x, 512, model.classes());
  add_cross_entropy(model, x);
  return model;
}

}  // namespace lockstep::runner
