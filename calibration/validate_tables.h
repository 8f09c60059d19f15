#pragma once

#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/validation.h"

namespace lockstep {

/// All-reduces of NCCL on one host, predicted where the calibration was not asked, beside what was
/// measured there; groups without a point are left out:
///   all_reduce_sizes    at the sizes that were held out, from the table of the same number of
///                       workers. Of a table that holds none out: every size but the first and the
///                       last, from the table without it (its neighbours are then a factor of four
///                       apart where sizes double)
///   all_reduce_from_n2  on three GPUs and more, from the table of two alone
///   all_reduce_from_n3  on four GPUs and more, from the tables of two and three
/// A run names the calibration, the number of workers and what was left out.
std::vector<ValidationGroup> validate_tables(const Calibration& calibration);

/// The calibration as it would be had nobody measured more than `workers` GPUs at once: without
/// larger tables, and without profiles taken beside more. Holds nothing where that leaves no
/// all-reduce or no profile.
Calibration up_to(const Calibration& calibration, int workers);

}  // namespace lockstep
