#include <string>
#include <vector>

#include "runner/models/layers.h"
#include "runner/models/zoo.h"

// Szegedy et al. 2016, with torchvision's names, shapes and epsilon, without the auxiliary
// classifier and, as everything here that is not named so, without dropout. Its 94 convolutions are
// one layer each with what follows them.
namespace lockstep::runner {

namespace {

/// Reads and adds layers of one module, whose branches all begin at its input.
class InceptionModule {
 public:
  InceptionModule(Model& model, std::string name, int input)
      : model_(model), name_(std::move(name)), input_(input) {}

  /// At the module's input, or behind `after`.
  int unit(const std::string& name, ConvUnitShape shape) { return unit(name, input_, shape); }
  int unit(const std::string& name, int after, ConvUnitShape shape) {
    shape.epsilon = 1e-3;
    return add_conv_unit(model_, name_ + name, after, shape);
  }
  int average_pool() { return add_average_pool(model_, name_ + "avg_pool", input_, 3, 1, 1); }
  int max_pool() { return add_max_pool(model_, name_ + "max_pool", input_, 3, 2); }
  int cat(const std::vector<int>& branches, const std::string& name = "cat") {
    return add_cat(model_, name_ + name, branches);
  }

 private:
  Model& model_;
  std::string name_;
  int input_;
};

/// 35x35: 224 + `pooled` channels go out.
int add_inception_a(Model& model, const std::string& name, int input, int in, int pooled) {
  InceptionModule module(model, name, input);
  const int one = module.unit("branch1x1", {.in = in, .out = 64});
  int five = module.unit("branch5x5_1", {.in = in, .out = 48});
  five = module.unit("branch5x5_2", five, {.in = 48, .out = 64, .height = 5, .width = 5});
  int twice = module.unit("branch3x3dbl_1", {.in = in, .out = 64});
  twice = module.unit("branch3x3dbl_2", twice, {.in = 64, .out = 96, .height = 3, .width = 3});
  twice = module.unit("branch3x3dbl_3", twice, {.in = 96, .out = 96, .height = 3, .width = 3});
  const int pool = module.unit("branch_pool", module.average_pool(), {.in = in, .out = pooled});
  return module.cat({one, five, twice, pool});
}

/// A square convolution that halves the image.
ConvUnitShape halving(int in, int out) {
  return {.in = in, .out = out, .height = 3, .width = 3, .stride = 2, .padded = false};
}

/// 35x35 to 17x17: `in` + 480 channels go out.
int add_inception_b(Model& model, const std::string& name, int input, int in) {
  InceptionModule module(model, name, input);
  const int three = module.unit("branch3x3", halving(in, 384));
  int twice = module.unit("branch3x3dbl_1", {.in = in, .out = 64});
  twice = module.unit("branch3x3dbl_2", twice, {.in = 64, .out = 96, .height = 3, .width = 3});
  twice = module.unit("branch3x3dbl_3", twice, halving(96, 96));
  return module.cat({three, twice, module.max_pool()});
}

ConvUnitShape row_of_seven(int in, int out) {
  return {.in = in, .out = out, .height = 1, .width = 7};
}
ConvUnitShape column_of_seven(int in, int out) {
  return {.in = in, .out = out, .height = 7, .width = 1};
}

/// 17x17, 768 channels in and out.
int add_inception_c(Model& model, const std::string& name, int input, int inner) {
  constexpr int kIn = 768, kOut = 192;
  InceptionModule module(model, name, input);
  const int one = module.unit("branch1x1", {.in = kIn, .out = kOut});
  int seven = module.unit("branch7x7_1", {.in = kIn, .out = inner});
  seven = module.unit("branch7x7_2", seven, row_of_seven(inner, inner));
  seven = module.unit("branch7x7_3", seven, column_of_seven(inner, kOut));
  int twice = module.unit("branch7x7dbl_1", {.in = kIn, .out = inner});
  twice = module.unit("branch7x7dbl_2", twice, column_of_seven(inner, inner));
  twice = module.unit("branch7x7dbl_3", twice, row_of_seven(inner, inner));
  twice = module.unit("branch7x7dbl_4", twice, column_of_seven(inner, inner));
  twice = module.unit("branch7x7dbl_5", twice, row_of_seven(inner, kOut));
  const int pool = module.unit("branch_pool", module.average_pool(), {.in = kIn, .out = kOut});
  return module.cat({one, seven, twice, pool});
}

/// 17x17 to 8x8: 768 channels in, 1280 out.
int add_inception_d(Model& model, const std::string& name, int input) {
  constexpr int kIn = 768, kInner = 192;
  InceptionModule module(model, name, input);
  int three = module.unit("branch3x3_1", {.in = kIn, .out = kInner});
  three = module.unit("branch3x3_2", three, halving(kInner, 320));
  int seven = module.unit("branch7x7x3_1", {.in = kIn, .out = kInner});
  seven = module.unit("branch7x7x3_2", seven, row_of_seven(kInner, kInner));
  seven = module.unit("branch7x7x3_3", seven, column_of_seven(kInner, kInner));
  seven = module.unit("branch7x7x3_4", seven, halving(kInner, kInner));
  return module.cat({three, seven, module.max_pool()});
}

/// 8x8, 2048 channels out.
int add_inception_e(Model& model, const std::string& name, int input, int in) {
  constexpr int kInner = 384;
  const ConvUnitShape row{.in = kInner, .out = kInner, .height = 1, .width = 3};
  const ConvUnitShape column{.in = kInner, .out = kInner, .height = 3, .width = 1};
  InceptionModule module(model, name, input);
  const int one = module.unit("branch1x1", {.in = in, .out = 320});
  int three = module.unit("branch3x3_1", {.in = in, .out = kInner});
  const int three_row = module.unit("branch3x3_2a", three, row);
  const int three_column = module.unit("branch3x3_2b", three, column);
  three = module.cat({three_row, three_column}, "branch3x3_cat");
  int twice = module.unit("branch3x3dbl_1", {.in = in, .out = 448});
  twice = module.unit("branch3x3dbl_2", twice, {.in = 448, .out = kInner, .height = 3, .width = 3});
  const int twice_row = module.unit("branch3x3dbl_3a", twice, row);
  const int twice_column = module.unit("branch3x3dbl_3b", twice, column);
  twice = module.cat({twice_row, twice_column}, "branch3x3dbl_cat");
  const int pool = module.unit("branch_pool", module.average_pool(), {.in = in, .out = 192});
  return module.cat({one, three, twice, pool});
}

/// 299x299 to 35x35 with 192 channels.
int add_inception_stem(Model& model) {
  InceptionModule stem(model, "", Model::kInput);
  int x = stem.unit("Conv2d_1a_3x3", halving(3, 32));
  x = stem.unit("Conv2d_2a_3x3", x,
                {.in = 32, .out = 32, .height = 3, .width = 3, .padded = false});
  x = stem.unit("Conv2d_2b_3x3", x, {.in = 32, .out = 64, .height = 3, .width = 3});
  x = add_max_pool(model, "maxpool1", x, 3, 2);
  x = stem.unit("Conv2d_3b_1x1", x, {.in = 64, .out = 80});
  x = stem.unit("Conv2d_4a_3x3", x,
                {.in = 80, .out = 192, .height = 3, .width = 3, .padded = false});
  return add_max_pool(model, "maxpool2", x, 3, 2);
}

}  // namespace

Model inception_v3() {
  Model model("inception_v3", {3, 299, 299}, 1000);
  int x = add_inception_stem(model);
  x = add_inception_a(model, "Mixed_5b.", x, 192, 32);
  x = add_inception_a(model, "Mixed_5c.", x, 256, 64);
  x = add_inception_a(model, "Mixed_5d.", x, 288, 64);
  x = add_inception_b(model, "Mixed_6a.", x, 288);
  x = add_inception_c(model, "Mixed_6b.", x, 128);
  x = add_inception_c(model, "Mixed_6c.", x, 160);
  x = add_inception_c(model, "Mixed_6d.", x, 160);
  x = add_inception_c(model, "Mixed_6e.", x, 192);
  x = add_inception_d(model, "Mixed_7a.", x);
  x = add_inception_e(model, "Mixed_7b.", x, 1280);
  x = add_inception_e(model, "Mixed_7c.", x, 2048);
  x = add_mean_pool(model, "avgpool", x);
  x = add_linear(model, "fc", x, 2048, model.classes());
  add_cross_entropy(model, x);
  return model;
}

}  // namespace lockstep::runner
