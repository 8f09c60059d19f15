#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runner/communicators/point_to_point.h"
#include "runner/measure/device.h"
#include "sim/core/units.h"

/// The servers of a parameter server. Processes 0 to n - 1 are workers, those behind them servers,
/// one for each shard. Rank 0 tells each server what comes; then every worker sends its gradients
/// of the shard, and the server its parameters back, until all workers have closed.
namespace lockstep::runner {

/// What rank 0 tells a server.
struct ServerOrder {
  enum class What : std::int64_t { train = 1, echo = 2, leave = 3, work = 4 };
  What what = What::leave;
  std::int64_t floats = 0;      ///< of the shard, of an echo, or of an array to work on
  std::int64_t workers = 0;     ///< that train
  std::int64_t staleness = -1;  ///< iterations ahead of the slowest; 0: synchronous, -1: no bound
  std::int64_t rounds = 0;      ///< of an echo, or of the work
};

/// Between two processes each kind of message goes its own way.
enum class ServerTag : std::uint64_t { order = 1, initial, push, reply, echo, work };

/// The floats of a shard and two numbers behind them, as one message: from a worker whether it
/// closes; from a server at which version its update was applied, and the version that it gets.
class ShardMessage {
 public:
  /// `pinned`: for copies to and from GPUs.
  ShardMessage(std::int64_t floats, bool pinned);
  const at::Tensor& floats() const { return floats_; }
  std::int64_t number(int index) const;
  void set_number(int index, std::int64_t value);
  std::unique_ptr<Mailbox> mailbox(PointToPoint& group, ServerTag tag) const;

 private:
  at::Tensor memory_, floats_;
};

/// A server's life: does what rank 0 orders until it may leave. `tell` is called with false before
/// it waits for others, and with true when there is something to do. LostPeers where one is gone.
void serve(PointToPoint& group, const std::function<void(bool)>& tell);

/// By rank 0.
void order_server(PointToPoint& group, int server, ServerOrder order);

/// Half of what a message takes to the server and back, `rounds` times, by rank 0.
std::vector<Moment> time_messages(PointToPoint& group, int server, Bytes bytes, int rounds);

/// What a server takes for one gradient, in nanoseconds.
struct ServerWork {
  Moment add = 0;    ///< to others
  Moment apply = 0;  ///< as an update
  Moment copy = 0;   ///< the parameters, into an answer
};

/// The same work that servers do in training, on arrays of `bytes` that have just arrived, by all
/// servers at once, the ranks behind `workers`: medians of `rounds`, then the mean over the
/// servers. By rank 0.
ServerWork time_server_work(PointToPoint& group, int workers, Bytes bytes, int rounds);

}  // namespace lockstep::runner
