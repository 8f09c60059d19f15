#include "runner/models/zoo.h"

#include <fmt/ranges.h>

#include <array>

#include "runner/models/layers.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

struct Entry {
  const char* name;
  Model (*make)();
};

constexpr std::array kZoo{
    Entry{"small_cnn", small_cnn},
    Entry{"vgg11", vgg11},
    Entry{"resnet18_cifar", resnet18_cifar},
    Entry{"resnet18_cifar_no_batchnorm", resnet18_cifar_no_batchnorm},
    Entry{"resnet50", resnet50},
    Entry{"resnet101", resnet101},
    Entry{"resnet152", resnet152},
    Entry{"vgg16", vgg16},
    Entry{"inception_v3", inception_v3},
    Entry{"gpt2_small", gpt2_small},
    Entry{"gpt2_small_dropout", gpt2_small_dropout},
    Entry{"small_gpt", small_gpt},
    Entry{"small_gpt_dropout", small_gpt_dropout},
    Entry{"captioner", captioner},
    Entry{"small_captioner", small_captioner},
};

std::string variant_of(const std::string& name, const char* ending, const char* flag,
                       const char* hint) {
  const std::string variant = name + ending;
  for (const Entry& entry : kZoo) {
    if (variant == entry.name) return variant;
  }
  throw InputError({}, flag, fmt::format("there is no such variant of {}", name), hint);
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kZoo) names.emplace_back(entry.name);
  return names;
}

std::string without_batch_norm(const std::string& name) {
  return variant_of(name, "_no_batchnorm", "--no-batchnorm", "of resnet18_cifar there is one");
}

std::string with_dropout(const std::string& name) {
  return variant_of(name, "_dropout", "--dropout", "of gpt2_small and small_gpt there are some");
}

Model make_model(const std::string& name, c10::Device device, std::uint64_t seed) {
  for (const Entry& entry : kZoo) {
    if (name != entry.name) continue;
    seed_parameters(seed);
    Model model = entry.make();
    model.finish(device);
    return model;
  }
  throw InputError({}, "model", fmt::format("there is no model \"{}\"", name),
                   fmt::format("one of {}", fmt::join(model_names(), ", ")));
}

}  // namespace lockstep::runner
