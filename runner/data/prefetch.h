#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "runner/measure/train.h"

namespace lockstep::runner {

/// Threads that make batches ahead of time, at most two each, and hand them out in order.
class Prefetch {
 public:
  /// `choose` is called by one thread at a time, in order; `make` by several.
  Prefetch(int threads, std::function<std::vector<std::int64_t>()> choose,
           std::function<Batch(const std::vector<std::int64_t>&)> make);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Waits for the next batch.
  Batch next();

 private:
  void work();

  std::function<std::vector<std::int64_t>()> choose_;
  std::function<Batch(const std::vector<std::int64_t>&)> make_;
  std::uint64_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Batch> made_;
  std::uint64_t begun_ = 0, handed_out_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace lockstep::runner
