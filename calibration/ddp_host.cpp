#include "calibration/ddp_host.h"

#include <algorithm>
#include <array>

#include "sim/records/run.h"
#include "sim/workload/buckets.h"
#include "sim/workload/workload.h"

namespace lockstep {
namespace {

/// In the order in which they get ready.
std::vector<Gradient> gradients_of(const Profile& profile) {
  std::vector<const Parameter*> ready;
  for (const Layer& layer : profile.layers) {
    for (const Parameter& parameter : layer.parameters) ready.push_back(&parameter);
  }
  std::ranges::stable_sort(ready, {}, &Parameter::ready_order);
  std::vector<Gradient> gradients;
  for (const Parameter* parameter : ready) gradients.push_back({parameter->bytes});
  return gradients;
}

/// On the host, into buckets of the usual caps.
Time copying(const std::vector<Gradient>& gradients, const CopyTable& bucket_in) {
  const StrategyOptions usual;
  const std::array caps{usual.first_bucket_cap, usual.bucket_cap};
  Time host;
  for (const Bucket& bucket : assign_buckets(gradients, caps)) {
    Bytes bytes;
    for (const int member : bucket) bytes += gradients[static_cast<std::size_t>(member)].bytes;
    host += copy_cost(bucket_in, bytes).host;
  }
  return host;
}

}  // namespace

void fit_gradient_hooks(std::vector<ProfileSample>& samples, const std::vector<CopyTable>& copies) {
  const auto found = std::ranges::find(copies, "bucket_in", &CopyTable::what);
  const CopyTable bucket_in = found == copies.end() ? CopyTable{} : *found;
  for (ProfileSample& sample : samples) {
    if (sample.ddp_host <= Time{}) continue;
    const std::vector<Gradient> gradients = gradients_of(sample.profile);
    if (gradients.empty()) continue;
    const Time hooks = std::max(Time{}, sample.ddp_host - copying(gradients, bucket_in));
    sample.profile.gradient_hook.host =
        Time::picoseconds(hooks.ps() / static_cast<std::int64_t>(gradients.size()));
  }
}

}  // namespace lockstep
