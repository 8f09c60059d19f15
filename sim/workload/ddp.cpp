// DistributedDataParallel: gradients are gathered in buckets and reduced while backward goes on. A
// step is one optimizer step: with accumulation several passes (forward and backward), each of a
// batch of its own.
//
// Left out: the walk over the autograd graph that find_unused_parameters adds to each pass.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/workload/buckets.h"
#include "sim/workload/strategy.h"

namespace lockstep {
namespace {

struct PendingBucket {
  Bytes bytes;
  std::size_t missing = 0;  ///< gradients
};

/// Buckets as the gradients of one pass arrive in them. A bucket is copied together when its last
/// gradient is ready, and reduced when all before it have been: strictly in order.
class Buckets {
 public:
  Buckets(const Workload& workload, const Profile& profile, Phase phase) : workload_(workload) {
    const StrategyOptions& options = workload.strategy;
    // Without what is known after a first backward, in the order of the parameters, then reversed.
    const bool as_ready = !options.find_unused_parameters;
    const std::vector<const Parameter*> order =
        as_ready ? parameters_as_ready(profile) : parameters_of(profile);
    std::vector<Bucket> assigned = assign_buckets(gradients_of(order), caps(options, phase));
    if (!as_ready) std::ranges::reverse(assigned);
    for (const Bucket& members : assigned) {
      PendingBucket bucket;
      for (int member : members) {
        const Parameter* parameter = order[static_cast<std::size_t>(member)];
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
    copy(worker, fmt::format("bucket {} copy", index), bucket.bytes);
    for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
      worker.collective(fmt::format("bucket {}", next_), CollectiveKind::all_reduce,
                        sent(buckets_[next_].bytes));
    }
    if (next_ == buckets_.size() && workload_.strategy.find_unused_parameters) {
      worker.collective("used parameters", CollectiveKind::all_reduce, used_map_bytes());
    }
  }

  /// Once all have been reduced: what was sent in half the bytes becomes whole again.
  void expand(WorkerProgram& worker) const {
    if (workload_.strategy.compression == Compression::none) return;
    for (std::size_t index = 0; index < buckets_.size(); ++index) {
      copy(worker, fmt::format("bucket {} expand", index), buckets_[index].bytes);
    }
  }

 private:
  static std::vector<Bytes> caps(const StrategyOptions& options, Phase phase) {
    const bool one = phase == Phase::first && !options.find_unused_parameters;
    if (one) return {kNoCap};
    return {options.first_bucket_cap, options.bucket_cap};
  }

  /// Converting reads as much as copying and writes half of it, or the other way round: as a copy.
  void copy(WorkerProgram& worker, const std::string& name, Bytes bytes) const {
    worker.work(TaskKind::bucket_copy, name, copy_cost(workload_.bucket_in, bytes), "bucket_copy");
  }

  Bytes sent(Bytes bytes) const {
    return workload_.strategy.compression == Compression::bf16 ? Bytes{bytes.count / 2} : bytes;
  }

  /// An int32 for each parameter.
  Bytes used_map_bytes() const { return {static_cast<std::int64_t>(4 * bucket_of_.size())}; }

  const Workload& workload_;
  std::vector<PendingBucket> buckets_;
  std::map<const Parameter*, std::size_t> bucket_of_;
  std::size_t next_ = 0;
};

}  // namespace

void write_ddp(WorkerProgram& worker, const Workload& workload, Phase phase) {
  const Profile& profile = worker.profile();
  const StrategyOptions& options = workload.strategy;
  for (int pass = 0; pass < options.accumulate; ++pass) {
    const bool first = pass == 0;
    const bool reduces = !options.no_sync || pass + 1 == options.accumulate;
    if (!first) worker.begin_pass();
    // A pass without reductions leaves out the next one's broadcast, too.
    if (options.broadcast_buffers && (first || !options.no_sync)) worker.broadcast_buffers();
    worker.forward();
    if (!reduces) {
      write_backward_alone(worker, workload, first);
      continue;
    }
    Buckets buckets(workload, profile, phase);
    worker.backward([&](const Layer& layer) {
      if (!first && options.no_sync) write_additions(worker, workload, layer);
      for (const Parameter& parameter : layer.parameters) buckets.gradient_ready(worker, parameter);
    });
    worker.join();
    buckets.expand(worker);
    // What was reduced is added to what the passes before have reduced.
    if (options.accumulate > 1 && !options.no_sync) {
      write_addition(worker, workload, "accumulate", parameter_bytes(profile));
    }
  }
  worker.optimizer();
}

}  // namespace lockstep
