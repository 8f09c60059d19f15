#include "runner/strategies/replica_threads.h"

#include <ATen/autocast_mode.h>

namespace lockstep::runner {

ReplicaThreads::Casts ReplicaThreads::casts() const {
  const c10::DeviceType type = devices_.torch(0).type();
  return {.on = at::autocast::is_autocast_enabled(type),
          .to = at::autocast::get_autocast_dtype(type)};
}

void ReplicaThreads::take_over(const Casts& casts) const {
  const c10::DeviceType type = devices_.torch(0).type();
  at::autocast::set_autocast_enabled(type, casts.on);
  at::autocast::set_autocast_dtype(type, casts.to);
}

ReplicaThreads::ReplicaThreads(ReplicaDevices& devices) : devices_(devices) {
  for (int device = 1; device < devices.count(); ++device) {
    Seat& seat = seats_.emplace_back();
    threads_.emplace_back([this, device, &seat] { serve(device, seat); });
  }
}

ReplicaThreads::~ReplicaThreads() {
  over_ = true;
  for (Seat& seat : seats_) seat.begin.release();
}

void ReplicaThreads::serve(int device, Seat& seat) {
  bool entered = false;
  for (;;) {
    seat.begin.acquire();
    if (over_) return;
    try {
      if (!entered) devices_.enter(device);
      entered = true;
      take_over(casts_);
      (*work_)(device);
    } catch (...) {
      seat.failure = std::current_exception();
    }
    seat.done.release();
  }
}

void ReplicaThreads::run(const std::function<void(int)>& work) {
  work_ = &work;
  casts_ = casts();
  for (Seat& seat : seats_) {
    seat.failure = nullptr;
    seat.begin.release();
  }
  std::exception_ptr failure;
  try {
    work(0);
  } catch (...) {
    failure = std::current_exception();
  }
  // All must have ended before anybody hears of it: they refer to `work`.
  for (Seat& seat : seats_) {
    seat.done.acquire();
    if (!failure) failure = seat.failure;
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep::runner
