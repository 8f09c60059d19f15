#include "runner/measure/batches.h"

namespace lockstep::runner {

Batches Batches::until_full() {
  Batches batches(std::vector<int>{kFirstSearched});
  batches.searching_ = true;
  return batches;
}

std::optional<int> Batches::next() {
  if (place_ == list_.size()) return std::nullopt;
  const int batch = list_[place_++];
  if (searching_ && batch <= kLargestBatch / kSearchFactor) {
    list_.push_back(batch * kSearchFactor);
  }
  return batch;
}

void Batches::did_not_fit() {
  if (searching_) list_.resize(place_);
}

}  // namespace lockstep::runner
