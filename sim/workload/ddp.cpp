// DistributedDataParallel: gradients are gathered in buckets and reduced while backward goes on.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "sim/workload/buckets.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

struct PendingBucket {
  Bytes bytes;
  std::size_t missing = 0;  ///< gradients
};

/// Buckets as gradients arrive in them. A bucket is copied together when its last gradient is
/// ready, and reduced when all before it have been: strictly in order.
class Buckets {
 public:
  Buckets(const Workload& workload, const Profile& profile, Phase phase) : workload_(workload) {
    const std::vector<const Parameter*> ready = parameters_as_ready(profile);
    for (const Bucket& members :
         assign_buckets(gradients_of(ready), caps(workload.strategy, phase))) {
      PendingBucket bucket;
      for (int member : members) {
        const Parameter* parameter = ready[static_cast<std::size_t>(member)];
        bucket_of_[parameter] = buckets_.size();
        bucket.bytes += parameter->bytes;
        ++bucket.missing;
      }
      buckets_.push_back(bucket);
    }
  }

  void gradient_ready(WorkerProgram& worker, const Parameter& parameter) {
    worker.call(worker.profile().gradient_hook.host, worker.profile().gradient_hook.device);
    const std::size_t index = bucket_of_.at(&parameter);
    PendingBucket& bucket = buckets_[index];
    if (--bucket.missing > 0) return;
    worker.work(TaskKind::bucket_copy, fmt::format("bucket {} copy", index),
                copy_cost(workload_.bucket_in, bucket.bytes), "bucket_copy");
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) {
      worker.collective(fmt::format("bucket {}", next_), CollectiveKind::all_reduce,
                        buckets_[next_].bytes);
      ++next_;
    }
  }

 private:
  static std::vector<Bytes> caps(const StrategyOptions& options, Phase phase) {
    if (phase == Phase::first) return {kNoCap};
    return {options.first_bucket_cap, options.bucket_cap};
  }

  const Workload& workload_;
  std::vector<PendingBucket> buckets_;
  std::map<const Parameter*, std::size_t> bucket_of_;
  std::size_t next_ = 0;
};

}  // namespace

void write_ddp(WorkerProgram& worker, const Workload& workload, Phase phase) {
  const Profile& profile = worker.profile();
  if (workload.strategy.broadcast_buffers) worker.broadcast_buffers();
  worker.forward();
  Buckets buckets(workload, profile, phase);
  worker.backward([&](const Layer& layer) {
    for (const Parameter& parameter : layer.parameters) buckets.gradient_ready(worker, parameter);
  });
  worker.join();
  worker.optimizer();
}

}  // namespace lockstep
