#pragma once

#include "runner/measure/device.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// What it takes to copy scattered gradients into one bucket ("bucket_in"), by bytes.
CopyTable measure_bucket_copies(Device& device);

/// What it takes to add one array to another of that size ("add"), by bytes of one.
CopyTable measure_adding(Device& device);

}  // namespace lockstep::runner
