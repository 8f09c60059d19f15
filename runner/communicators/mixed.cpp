#include "runner/communicators/mixed.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "sim/core/error.h"

namespace lockstep::runner {

MixedCommunicator::MixedCommunicator(std::unique_ptr<Communicator> all, Communicator* gpus,
                                     HostCopies& copies, Store& store)
    : all_(std::move(all)), gpus_(gpus), copies_(copies), store_(store) {}

void MixedCommunicator::all_reduce(const at::Tensor& flat) {
  through_host(flat, [this](const at::Tensor& host) { all_->all_reduce(host); });
}

void MixedCommunicator::broadcast(const at::Tensor& flat, int root) {
  through_host(flat, [&](const at::Tensor& host) { all_->broadcast(host, root); });
}

void MixedCommunicator::through_host(const at::Tensor& flat,
                                     const std::function<void(const at::Tensor&)>& operation) {
  const at::Tensor host = flat.cpu();
  operation(host);
  all_->join();
  all_->take_transfers();
  if (!flat.is_cpu()) flat.copy_(host);
}

void MixedCommunicator::gather(const at::Tensor& /*flat*/, const at::Tensor& /*all*/,
                               int /*root*/) {
  throw RunError("unlike devices gather nothing");
}

void MixedCommunicator::scatter(const std::vector<at::Tensor>& /*parts*/,
                                const at::Tensor& /*flat*/, int /*root*/) {
  throw RunError("unlike devices scatter nothing");
}

std::vector<Transfer> MixedCommunicator::take_transfers() {
  return {};
}

SharedMemory MixedCommunicator::share(std::size_t bytes) {
  constexpr std::chrono::seconds kMost{60};
  const std::string key = fmt::format("shared memory {}", shared_++);
  if (!on_cores()) {
    SharedMemory memory = SharedMemory::open(store_.get(key, kMost), bytes);
    barrier();
    return memory;
  }
  SharedMemory memory = SharedMemory::create(bytes);
  store_.set(key, memory.path());
  barrier();  // now all have opened it
  return memory;
}

}  // namespace lockstep::runner
