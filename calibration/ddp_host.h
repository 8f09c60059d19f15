#pragma once

#include <vector>

#include "sim/records/collective_table.h"
#include "sim/records/measurement.h"

namespace lockstep {

/// Fills `gradient_hook.host` of the samples that say how much longer the host took for a step with
/// DDP's hooks and buckets and no communication: that, less what `copies` ("bucket_in") say that
/// its buckets take, shared out evenly over the gradients; not below zero. The simulator then adds
/// up the same in a step of DDP, whatever the caps: a hook for each gradient, a copy for each
/// bucket. (What a call of a collective takes comes from the collective's table.) Samples without
/// it stay as they are.
void fit_gradient_hooks(std::vector<ProfileSample>& samples, const std::vector<CopyTable>& copies);

}  // namespace lockstep
