#include "calibration/ddp_host.h"

#include <algorithm>
#include <array>

#include "sim/records/run.h"
#include "sim/workload/buckets.h"
#include "sim/workload/workload.h"

namespace lockstep {
namespace {

/// On the host, into buckets of the usual caps.
Time copying(const std::vector<Gradient>& gradients, const CopyTable& bucket_in) {
  const StrategyOptions usual;
  const std::array caps{usual.first_bucket_cap, usual.bucket_cap};
  Time host;
  for (const Bucket& bucket : assign_buckets(gradients, caps)) {
    host += copy_cost(bucket_in, bytes_of(bucket, gradients)).host;
  }
  return host;
}

}  // namespace

void fit_gradient_hooks(std::vector<ProfileSample>& samples, const std::vector<CopyTable>& copies) {
  const auto found = std::ranges::find(copies, "bucket_in", &CopyTable::what);
  const CopyTable bucket_in = found == copies.end() ? CopyTable{} : *found;
  for (ProfileSample& sample : samples) {
    if (sample.ddp_host <= Time{}) continue;
    const std::vector<Gradient> gradients = gradients_of(parameters_as_ready(sample.profile));
    if (gradients.empty()) continue;
    const Time hooks = std::max(Time{}, sample.ddp_host - copying(gradients, bucket_in));
    sample.profile.gradient_hook.host =
        Time::picoseconds(hooks.ps() / static_cast<std::int64_t>(gradients.size()));
  }
}

}  // namespace lockstep
