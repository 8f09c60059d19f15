#pragma once

#include "sim/core/time.h"
#include "sim/records/profile.h"

namespace lockstep {

/// A steady step of one worker alone, synchronised each step, as the simulator sees this profile.
Time simulated_single_step(const Profile& profile, bool cpu, int launch_queue);

struct LaneTimes {
  Time host, device;
};
/// What one step keeps the host thread and the device busy for.
LaneTimes lane_times(const Profile& profile);

/// Multiplies every host time, or every device time, of layers, optimizer and step.
void scale_host(Profile& profile, double factor);
void scale_device(Profile& profile, double factor);

/// Scales times until the simulated step lasts `step`, within a factor of two, beyond which it is
/// no correction of a measurement; returns how much longer it was before, relative. Eager steps on
/// a GPU are fitted on the host where that can be done: its times vary from one moment to the next,
/// while kernel times hardly do. All others are fitted on the device.
double fit_to_step(Profile& profile, Time step, bool cpu, int launch_queue);

}  // namespace lockstep
