#pragma once

#include <functional>
#include <string>

#include "runner/communicators/point_to_point.h"
#include "runner/communicators/rendezvous.h"

namespace lockstep::runner {

/// The last `servers` of all processes are no workers.
bool is_server(const WorkerEnvironment& environment, int servers);

/// Of the workers alone. InputError where they are fewer than `least`, and where there are several
/// processes on each of several hosts.
WorkerEnvironment without_servers(WorkerEnvironment environment, int servers, int least);

/// A server's process, from meeting the others until it may leave. It has no cores of its own: it
/// works, with `threads`, while workers wait for it. LostPeers where one is gone; `give_up`: see
/// Watch, after `silence_seconds`; empty: a launcher watches.
void run_server(const WorkerEnvironment& environment, int threads, int silence_seconds,
                const std::function<void(const std::string&)>& give_up);

/// By rank 0: the ranks behind `workers` may leave. `group`: null without servers.
void dismiss_servers(PointToPoint* group, int workers);

/// glibc would give activations back to the system after every layer and fault them in again, which
/// costs a tenth of a step and varies.
void keep_memory();

}  // namespace lockstep::runner
