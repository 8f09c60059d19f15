#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runner/communicators/gloo.h"
#include "runner/measure/device.h"
#include "sim/core/error.h"

namespace lockstep::runner::testing {

class SharedStore final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override {
    {
      const std::lock_guard lock(mutex_);
      values_[key] = value;
    }
    changed_.notify_all();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
      throw RunError("nobody has set " + key);
    }
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// Runs `body` on every rank, which are threads of this process over loopback; what the ranks throw
/// comes out.
inline void on_ranks(int size, const std::function<void(Communicator&, Device&)>& body) {
  const auto store = std::make_shared<SharedStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          const WorkerEnvironment environment{.rank = rank,
                                              .world_size = size,
                                              .local_rank = rank,
                                              .local_size = size,
                                              .master_address = "127.0.0.1"};
          const auto device = make_cpu_device(1);
          const auto communicator = make_gloo(environment, size, store);
          body(*communicator, *device);
          communicator->barrier();  // nobody hangs up while others still talk
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace lockstep::runner::testing
