#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace lockstep::runner {

/// Samples per worker and step, at most.
inline constexpr int kLargestBatch = 1 << 20;
/// Where a search begins, and by how much it goes on.
inline constexpr int kFirstSearched = 32, kSearchFactor = 4;

/// The batches of one model, one after another: a list to its end, whatever fits; or larger and
/// larger ones until one does not fit.
class Batches {
 public:
  explicit Batches(std::vector<int> list) : list_(std::move(list)) {}
  /// 32, 128, 512, ...
  static Batches until_full();

  /// The one to try now; nothing when all is done.
  std::optional<int> next();
  /// The last one needed more memory than there is.
  void did_not_fit();

 private:
  std::vector<int> list_;
  std::size_t place_ = 0;
  bool searching_ = false;
};

}  // namespace lockstep::runner
