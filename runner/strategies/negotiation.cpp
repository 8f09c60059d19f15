#include "runner/strategies/negotiation.h"

#include <ATen/ops/zeros.h>

#include "sim/core/error.h"
#include "sim/workload/fusion.h"

namespace lockstep::runner {

namespace {

constexpr int kRoot = 0;

}  // namespace

Negotiation::Negotiation(Communicator& communicator, std::size_t parameters)
    : communicator_(communicator), asked_(parameters), named_by_(parameters) {
  const auto length = static_cast<std::int64_t>(parameters) + 1;
  flags_ = at::zeros({length}, at::kFloat);
  requests_ = at::zeros({length}, at::kLong);
  LOCKSTEP_ASSERT(static_cast<std::int64_t>(flags_.nbytes()) == negotiation_bytes(parameters).count,
                  "as the simulator has it");
  LOCKSTEP_ASSERT(static_cast<std::int64_t>(requests_.nbytes()) == request_bytes(parameters).count,
                  "as the simulator has it");
  if (communicator.rank() == kRoot) {
    all_requests_ = at::zeros({communicator.size(), length}, at::kLong);
  }
}

bool Negotiation::has_new(const std::vector<bool>& have) const {
  for (std::size_t parameter = 0; parameter < have.size(); ++parameter) {
    if (have[parameter] && !asked_[parameter]) return true;
  }
  return false;
}

std::vector<int> Negotiation::agree(const std::vector<bool>& have) {
  float* flags = flags_.mutable_data_ptr<float>();
  for (std::size_t place = 0; place < asked_.size(); ++place) {
    const bool mine = place < cache_.size() && have[static_cast<std::size_t>(cache_[place])];
    flags[place] = mine ? 1.0F : 0.0F;
  }
  flags[asked_.size()] = has_new(have) ? 1.0F : 0.0F;
  communicator_.all_reduce(flags_);
  communicator_.join();
  const auto all = static_cast<float>(communicator_.size());
  std::vector<int> agreed;
  for (std::size_t place = 0; place < cache_.size(); ++place) {
    if (flags[place] == all) agreed.push_back(cache_[place]);
  }
  if (flags[asked_.size()] > 0) exchange_new(have, agreed);
  return agreed;
}

void Negotiation::exchange_new(const std::vector<bool>& have, std::vector<int>& agreed) {
  std::int64_t* words = requests_.mutable_data_ptr<std::int64_t>();
  words[0] = 0;
  for (std::size_t parameter = 0; parameter < have.size(); ++parameter) {
    if (!have[parameter] || asked_[parameter]) continue;
    asked_[parameter] = true;
    words[++words[0]] = static_cast<std::int64_t>(parameter);
  }
  communicator_.gather(requests_, all_requests_, kRoot);
  communicator_.join();
  if (communicator_.rank() == kRoot) answer();
  communicator_.broadcast(requests_, kRoot);
  communicator_.join();
  for (std::int64_t i = 1; i <= words[0]; ++i) {
    const int parameter = static_cast<int>(words[i]);
    cache_.push_back(parameter);
    agreed.push_back(parameter);
  }
}

/// Those that the last rank has named now.
void Negotiation::answer() {
  const std::int64_t length = requests_.numel();
  const std::int64_t* asked = all_requests_.const_data_ptr<std::int64_t>();
  std::int64_t* words = requests_.mutable_data_ptr<std::int64_t>();
  words[0] = 0;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::int64_t* list = asked + rank * length;
    for (std::int64_t i = 1; i <= list[0]; ++i) {
      if (++named_by_[static_cast<std::size_t>(list[i])] < communicator_.size()) continue;
      words[++words[0]] = list[i];
    }
  }
}

}  // namespace lockstep::runner
