#include "runner/data/prefetch.h"

namespace lockstep::runner {

Prefetch::Prefetch(int threads, std::function<std::vector<std::int64_t>()> choose,
                   std::function<Batch(const std::vector<std::int64_t>&)> make)
    : choose_(std::move(choose)),
      make_(std::move(make)),
      ahead_(2 * static_cast<std::uint64_t>(threads)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

void Prefetch::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || begun_ < handed_out_ + ahead_; });
    if (stopping_) return;
    const std::uint64_t index = begun_++;
    const std::vector<std::int64_t> chosen = choose_();
    lock.unlock();
    Batch batch = make_(chosen);
    lock.lock();
    made_.emplace(index, std::move(batch));
    changed_.notify_all();
  }
}

Batch Prefetch::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return made_.contains(handed_out_); });
  Batch batch = std::move(made_.extract(handed_out_).mapped());
  ++handed_out_;
  changed_.notify_all();
  return batch;
}

}  // namespace lockstep::runner
