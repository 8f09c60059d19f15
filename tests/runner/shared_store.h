#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "runner/communicators/rendezvous.h"
#include "sim/core/error.h"

namespace lockstep::testing {

/// Where ranks that are threads of one process find each other.
class SharedStore final : public runner::Store {
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

}  // namespace lockstep::testing
