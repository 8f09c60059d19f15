// Asynchronous training, and the same in the order in which servers applied its updates.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runner/data/loader.h"
#include "runner/measure/gather.h"
#include "runner/measure/parity.h"
#include "runner/measure/train.h"
#include "runner/models/zoo.h"
#include "sim/core/error.h"
#include "sim/workload/sharding.h"

namespace lockstep::runner {

namespace {

constexpr int kUpdates = 5;  ///< of each worker

/// What the servers did with the update of one worker's step, by server.
using Exchanges = std::vector<ServerExchange>;
/// By worker and step.
using UpdateLog = std::vector<std::vector<Exchanges>>;

/// Every rank's, on every rank.
UpdateLog share_log(const Exchanges& mine, int servers, Communicator& communicator,
                    Device& device) {
  std::vector<std::int64_t> numbers;
  for (const ServerExchange& one : mine) {
    numbers.insert(numbers.end(), {one.server, one.computed_on, one.applied_at, one.received});
  }
  UpdateLog log;
  for (const auto& row : gather(&communicator, numbers, device.torch())) {
    auto& steps = log.emplace_back();
    for (std::size_t i = 0; i < row.size(); i += 4) {
      if (i / 4 % static_cast<std::size_t>(servers) == 0) steps.emplace_back();
      steps.back().push_back({.server = static_cast<int>(row[i]),
                              .computed_on = row[i + 1],
                              .applied_at = row[i + 2],
                              .received = row[i + 3],
                              .out = {},
                              .in = {}});
    }
  }
  return log;
}

/// The servers and all workers on one device: each worker has the parameters that it had, each
/// server applies the updates in the logged order, on cores as servers do.
class InOrder {
 public:
  InOrder(Model& model, const UpdateLog& log, int servers)
      : model_(model), log_(log), shards_(shards_of(model, servers)) {
    for (const std::vector<int>& shard : shards_) {
      servers_.emplace_back(flat(shard, /*gradients=*/false).cpu());
    }
    for (std::size_t worker = 0; worker < log.size(); ++worker) {
      Replica& replica = workers_.emplace_back();
      for (const Server& server : servers_) {
        replica.parameters.push_back(server.shard.to(model.parameters().front().device(),
                                                     /*non_blocking=*/false, /*copy=*/true));
      }
      replica.gradients.resize(servers_.size());
    }
  }

  /// Until each worker has done all its steps; `batch` (worker, step) is what it trained on.
  template <class MakeBatch>
  void run(MakeBatch batch, const std::function<void()>& beat) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
        Replica& replica = workers_[worker];
        if (replica.computed || replica.step == log_[worker].size()) continue;
        compute(replica, batch(worker, replica.step));
        beat();
        moved = true;
      }
      for (std::size_t server = 0; server < servers_.size(); ++server) {
        while (apply_next(server)) moved = true;
      }
    }
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      if (workers_[worker].step == log_[worker].size()) continue;
      throw RunError("the servers' log of updates contradicts itself");
    }
  }

  /// Of a worker, at its end; by server.
  const std::vector<at::Tensor>& parameters(std::size_t worker) const {
    return workers_[worker].parameters;
  }
  std::vector<at::Tensor> parameters_of(Model& other) {
    std::vector<at::Tensor> result;
    for (const std::vector<int>& shard : shards_) {
      std::vector<at::Tensor> parts;
      for (const int index : shard) {
        parts.push_back(other.parameters()[static_cast<std::size_t>(index)].detach().flatten());
      }
      result.push_back(at::cat(parts));
    }
    return result;
  }

 private:
  struct Server {
    explicit Server(const at::Tensor& initial) : shard(initial), sgd({initial}, {}) {}
    at::Tensor shard;
    Sgd sgd;
    std::int64_t version = 0;
  };
  struct Replica {
    std::vector<at::Tensor> parameters, gradients;  ///< by server
    std::size_t step = 0;
    bool computed = false;
    std::size_t received = 0;  ///< shards, of this step
  };

  static std::vector<std::vector<int>> shards_of(const Model& model, int servers) {
    std::vector<Bytes> sizes;
    for (const at::Tensor& parameter : model.parameters()) {
      sizes.push_back({static_cast<std::int64_t>(parameter.nbytes())});
    }
    return shard_parameters(sizes, servers);
  }

  at::Tensor flat(const std::vector<int>& shard, bool gradients) const {
    std::vector<at::Tensor> parts;
    for (const int index : shard) {
      const at::Tensor& parameter = model_.parameters()[static_cast<std::size_t>(index)];
      parts.push_back((gradients ? parameter.grad() : parameter.detach()).flatten());
    }
    return at::cat(parts);
  }

  void compute(Replica& replica, const Batch& batch) {
    for (std::size_t server = 0; server < shards_.size(); ++server) {
      std::int64_t offset = 0;
      for (const int index : shards_[server]) {
        at::Tensor here = model_.parameters()[static_cast<std::size_t>(index)].detach();
        here.copy_(replica.parameters[server].narrow(0, offset, here.numel()).view(here.sizes()));
        offset += here.numel();
      }
    }
    model_.loss(batch.input, batch.target).backward();
    for (std::size_t server = 0; server < shards_.size(); ++server) {
      replica.gradients[server] = flat(shards_[server], /*gradients=*/true).cpu();
    }
    for (const at::Tensor& parameter : model_.parameters()) parameter.mutable_grad().reset();
    replica.computed = true;
  }

  /// The update that brings the server from its version to the next, and the answers that follow.
  bool apply_next(std::size_t index) {
    Server& server = servers_[index];
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      Replica& replica = workers_[worker];
      if (!replica.computed || log_[worker][replica.step][index].applied_at != server.version) {
        continue;
      }
      if (!replica.gradients[index].defined()) continue;
      server.sgd.step({replica.gradients[index]});
      replica.gradients[index].reset();
      ++server.version;
      for (std::size_t other = 0; other < workers_.size(); ++other) answer(other, index);
      return true;
    }
    return false;
  }

  void answer(std::size_t worker, std::size_t index) {
    Replica& replica = workers_[worker];
    if (!replica.computed || replica.gradients[index].defined()) return;
    if (log_[worker][replica.step][index].received != servers_[index].version) return;
    const at::NoGradGuard no_grad;
    replica.parameters[index].copy_(servers_[index].shard);
    if (++replica.received < servers_.size()) return;
    replica.received = 0;
    replica.computed = false;
    ++replica.step;
  }

  Model& model_;
  const UpdateLog& log_;
  std::vector<std::vector<int>> shards_;  ///< parameters by server
  std::vector<Server> servers_;
  std::vector<Replica> workers_;
};

double norm_between(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double norm = a[i].sub(b[i]).to(at::kDouble).norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

}  // namespace

Parity check_update_order(const std::string& name, const StrategyOptions& options, int batch,
                          std::uint64_t seed, Communicator& communicator, Device& device,
                          PointToPoint& group, const std::function<void()>& beat) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  Model together = make_model(name, device.torch(), seed);
  Model alone = make_model(name, device.torch(), seed);
  together.drop_nothing();
  alone.drop_nothing();
  const auto batch_at = [&](std::size_t worker, std::size_t step) {
    const auto number = step * static_cast<std::size_t>(communicator.size()) + worker;
    return random_batch(together, batch, seed + number + 1, device.torch());
  };
  Exchanges mine;
  {
    const auto strategy = make_strategy(options, together, &communicator, device, &group);
    // Rank 0's parameters are everybody's.
    for (std::size_t i = 0; i < alone.parameters().size(); ++i) {
      alone.parameters()[i].detach().copy_(together.parameters()[i].detach());
    }
    Trainer trainer(together, *strategy);
    for (std::size_t step = 0; step < kUpdates; ++step) {
      trainer.step(batch_at(rank, step));
      beat();
    }
    mine = strategy->take_exchanges();
  }
  const UpdateLog log = share_log(mine, options.servers, communicator, device);
  InOrder in_order(alone, log, options.servers);
  const std::vector<at::Tensor> start = in_order.parameters_of(alone);
  in_order.run(batch_at, beat);
  const std::vector<at::Tensor>& expected = in_order.parameters(rank);
  const double moved = norm_between(expected, start);
  const double apart = norm_between(in_order.parameters_of(together), expected);
  const double ratio = apart == 0 ? 0 : apart / moved;
  constexpr double kScale = 1e12;  // the ratio travels as an integer
  double worst = 0;
  const double mine_scaled = std::isfinite(ratio) ? std::min(ratio, 1e6) * kScale : 1e6 * kScale;
  for (const auto& row :
       gather(&communicator, {std::llround(std::ceil(mine_scaled))}, device.torch())) {
    worst = std::max(worst, static_cast<double>(row.front()) / kScale);
  }
  return {.relative_l2 = worst, .steps = kUpdates};
}

}  // namespace lockstep::runner
