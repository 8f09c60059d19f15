#pragma once

#include <exception>
#include <memory>
#include <thread>

#include "runner/communicators/communicator.h"
#include "runner/communicators/rendezvous.h"

namespace lockstep::runner {

/// Gloo over TCP among the first `size` workers; the others must not call. Operations run on a
/// thread of their own, so that compute goes on. One host: over loopback; else over the interface
/// named by GLOO_SOCKET_IFNAME, or the one on the way to rank 0. RunError where they cannot
/// connect, or where a peer has been silent for `timeout`.
std::unique_ptr<Communicator> make_gloo(
    const WorkerEnvironment& environment, int size, const std::shared_ptr<Store>& store,
    std::chrono::milliseconds timeout = std::chrono::seconds(30));

/// What `connect` makes, made on a thread of its own: Gloo makes the thread that it starts on, and
/// those after it, give way to others, and one that launches kernels must not.
template <class Connect>
auto connect_aside(Connect connect) {
  decltype(connect()) connected;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      connected = connect();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return connected;
}

/// "0.5.0"
std::string gloo_version();

}  // namespace lockstep::runner
