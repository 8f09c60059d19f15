#include <string>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

namespace lockstep::runner {

Model small_cnn() {
  Model model("small_cnn", {3, 32, 32}, 10);
  int x = Model::kInput;
  int channels = 3;
  for (const int out : {32, 64, 128}) {
    const std::string block = "block" + std::to_string(out) + ".";
    x = add_conv(model, block + "conv", x, {.in = channels, .out = out});
    x = add_norm(model, block + "norm", x, out);
    x = add_relu(model, block + "relu", x);
    x = add_max_pool(model, block + "pool", x, 2, 2);
    channels = out;
  }
  x = add_linear(model, "classifier", x, channels * 4 * 4, model.classes());
  add_cross_entropy(model, x);
  return model;
}

}  // namespace lockstep::runner
