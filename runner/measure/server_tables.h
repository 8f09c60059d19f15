#pragma once

#include <functional>
#include <vector>

#include "runner/communicators/point_to_point.h"
#include "sim/records/collective_table.h"

namespace lockstep::runner {

/// "send_recv" over Gloo by size: a message between rank 0 and the first server, the rank behind
/// `workers`, which are two processes of a host. By rank 0; `beat` is called after each size.
CollectiveTable time_message_table(PointToPoint& group, int workers,
                                   const std::function<void()>& beat);

/// "server_add", "server_apply" and "server_copy" by size: what servers do with a gradient, all of
/// them at once. By rank 0; `beat` is called after each size.
std::vector<CopyTable> time_server_tables(PointToPoint& group, int workers,
                                          const std::function<void()>& beat);

}  // namespace lockstep::runner
