#include "runner/strategies/replica_devices.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

class CpuReplicas final : public ReplicaDevices {
 public:
  explicit CpuReplicas(int count) : count_(count) {}

  int count() const override { return count_; }
  c10::Device torch(int /*device*/) const override { return c10::kCPU; }
  void enter(int /*device*/) override {}

  void broadcast(const at::Tensor& from, std::vector<at::Tensor>& to) override {
    for (at::Tensor& copy : to) copy.copy_(from);
  }
  void reduce(const std::vector<at::Tensor>& parts, at::Tensor& sum) override {
    sum.copy_(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
  }
  std::vector<at::Tensor> scatter(const at::Tensor& whole) override {
    std::vector<at::Tensor> shares = whole.chunk(count_);
    require_shares(shares, count_);
    return shares;
  }
  at::Tensor gather(const std::vector<at::Tensor>& parts) override { return at::cat(parts); }

 private:
  int count_;
};

}  // namespace

std::unique_ptr<ReplicaDevices> make_cpu_replicas(int count) {
  return std::make_unique<CpuReplicas>(count);
}

void require_shares(const std::vector<at::Tensor>& shares, int devices) {
  if (shares.size() == static_cast<std::size_t>(devices)) return;
  std::int64_t samples = 0;
  for (const at::Tensor& share : shares) samples += share.size(0);
  throw RunError(
      fmt::format("{} samples make {} shares, for {} devices", samples, shares.size(), devices));
}

}  // namespace lockstep::runner
