#include "runner/measure/gather.h"

#include <ATen/ops/tensor.h>

namespace lockstep::runner {

std::vector<std::vector<std::int64_t>> gather(Communicator* communicator,
                                              const std::vector<std::int64_t>& mine,
                                              c10::Device device) {
  if (communicator == nullptr) return {mine};
  std::vector<at::Tensor> rows;
  for (int rank = 0; rank < communicator->size(); ++rank) {
    rows.push_back(at::tensor(mine).to(device));
    communicator->broadcast(rows.back(), rank);
  }
  communicator->join();
  communicator->take_transfers();
  std::vector<std::vector<std::int64_t>> all;
  for (const at::Tensor& row : rows) {
    const at::Tensor host = row.cpu();
    const auto* begin = host.const_data_ptr<std::int64_t>();
    all.emplace_back(begin, begin + host.numel());
  }
  return all;
}

std::int64_t agree(Communicator* communicator, std::int64_t mine, c10::Device device) {
  return gather(communicator, {mine}, device).front().front();
}

}  // namespace lockstep::runner
