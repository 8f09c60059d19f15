#pragma once

#include <string>

#include "sim/records/calibration.h"
#include "sim/records/profile.h"
#include "sim/records/result.h"

namespace lockstep {

/// Which costs a worker has.
struct ProfileQuery {
  std::string model;
  std::string precision = "fp32";
  int batch = 1;
  bool graph = false;
  int beside = 1;       ///< workers that compute at the same time on its host, itself included
  int slow_motion = 1;  ///< everything takes so many times as long
};

struct ProfileChoice {
  Profile profile;
  Basis basis = Basis::measured;
};

/// Workers that compute on the host's cores.
bool on_cpu(const Calibration& calibration);

/// Threads with which each worker on cores was profiled: as its profiles say ("2 threads"), else by
/// OMP_NUM_THREADS; one where neither tells.
int compute_threads(const Calibration& calibration);

/// The profile of a worker, from what was measured. Between measured batches, device times are
/// linear in the batch, layer by layer, and host times those of the nearest batch; beyond them the
/// last line goes on. Prefers profiles measured with as many workers beside; else takes those with
/// the most below, and for workers on cores slows them by the table of active workers. Throws
/// InputError where the model or precision was not measured.
ProfileChoice choose_profile(const Calibration& calibration, const ProfileQuery& query);

}  // namespace lockstep
