#pragma once

#include <string>
#include <vector>

namespace lockstep::runner {

/// How a step computes. Parameters, gradients, their sums and the optimizer are fp32 in all of
/// them.
enum class Precision {
  fp32,  ///< single precision as IEEE 754 has it
  tf32,  ///< GPUs round the factors of matrix products and convolutions to 10 bits behind the point
  bf16,  ///< forward, and with it backward, as autocast has it: products and convolutions in bf16
};

/// "fp32", "tf32", "bf16": the names in records.
std::vector<std::string> precision_names();
std::string to_string(Precision precision);
/// InputError for another name.
Precision parse_precision(const std::string& name);

/// What the id of a run ends on, so that runs of several precisions can lie side by side: "-bf16";
/// nothing at fp32.
std::string precision_ending(Precision precision);

}  // namespace lockstep::runner
