#pragma once

#include <string>

#include "runner/data/idx.h"

namespace lockstep::runner {

/// The 50,000 training images of CIFAR-10's binary version: data_batch_1.bin .. data_batch_5.bin in
/// `directory`, 10,000 records each of a label and a 32x32 image as planes of red, green and blue.
/// InputError where a file is missing, of another size, or holds a label above 9.
LabelledImages read_cifar10(const std::string& directory);

}  // namespace lockstep::runner
