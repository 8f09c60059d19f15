#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runner/communicators/communicator.h"

namespace lockstep::runner {

/// How Horovod's ranks agree which gradients all of them have, once a cycle and all ranks together.
/// A gradient that is new goes from every rank to rank 0, which waits until all have named it and
/// then tells everybody; from then on all know it by its place in the cache, and one sum over a
/// flag for each place says which all have.
class Negotiation {
 public:
  /// Over `communicator`, in host memory; it outlives this.
  Negotiation(Communicator& communicator, std::size_t parameters);

  /// `have`: by parameter, whether this rank has its gradient and it has not been reduced yet.
  /// Returns the parameters that all ranks have, in the order in which they got into the cache;
  /// alike on all ranks. Waits for them. RunError where one is lost.
  std::vector<int> agree(const std::vector<bool>& have);

 private:
  bool has_new(const std::vector<bool>& have) const;
  void exchange_new(const std::vector<bool>& have, std::vector<int>& agreed);
  void answer();

  Communicator& communicator_;
  std::vector<int> cache_;     ///< parameters, by place
  std::vector<bool> asked_;    ///< by parameter: this rank has named it
  std::vector<int> named_by_;  ///< rank 0: by parameter, how many ranks have named it
  at::Tensor flags_;           ///< of each place, and whether there is something new
  at::Tensor requests_;        ///< a number, and as many parameters
  at::Tensor all_requests_;    ///< rank 0: of all ranks
};

}  // namespace lockstep::runner
