#pragma once

#include <string>
#include <vector>

#include "sim/records/calibration.h"
#include "sim/records/measurement.h"
#include "sim/records/run.h"

namespace lockstep::testing {

/// A CPU measurement of one small model, alone and with two workers, and all-reduce tables.
inline Measurement small_measurement() {
  const auto us = [](std::int64_t value) { return Time::microseconds(value); };
  Measurement measurement;
  measurement.id = "visit";
  measurement.reference = us(100);
  measurement.origin.machine.cores = 2;
  for (const int beside : {1, 2}) {
    for (int process = 0; process < 3; ++process) {
      ProfileSample sample;
      sample.process = process;
      sample.speed_index = {us(100), us(100)};
      sample.profile.model = "tiny";
      sample.profile.batch = 16;
      sample.profile.beside = beside;
      sample.profile.layers.resize(1);
      sample.profile.layers[0].name = "fc";
      sample.profile.layers[0].kind = "linear";
      sample.profile.layers[0].forward.device = us(100);
      sample.profile.layers[0].backward.device = us(200);
      sample.profile.layers[0].parameters = {{"weight", {4096}, 0}};
      sample.steps = {us(300), us(300), us(300)};
      measurement.profiles.push_back(sample);
    }
  }
  for (const char* collective : {"all_reduce", "broadcast"}) {
    CollectiveSample sample;
    sample.speed_index = {us(100), us(100)};
    sample.table.collective = collective;
    sample.table.backend = "gloo";
    sample.table.workers = 2;
    sample.table.points = {{{1024}, us(50), us(50), us(50), {}},
                           {{8192}, us(50), us(50), us(50), {}}};
    measurement.collectives.push_back(sample);
  }
  return measurement;
}

/// With two workers `ddp` takes 300 us of compute and 50 us of an all-reduce that nothing hides.
inline Run small_run(Time step) {
  Run run;
  run.id = "tiny-2";
  run.calibration = "visit";
  run.model = "tiny";
  run.batch_per_worker = 16;
  run.workers = 2;
  run.strategy.kind = "ddp";
  run.repeats.resize(1);
  run.repeats[0].step = {step, step, step, step};
  run.repeats[0].speed_index = {Time::microseconds(100), Time::microseconds(100)};
  run.repeats[0].samples = {step, step};
  return run;
}

inline const std::string kScenario =
    "name: tiny\ncalibration: calibration.json\nmodel: tiny\nbatch_per_worker: 16\n"
    "workers: [1, 2]\nstrategy: {kind: ddp}\niterations: 5\nseed: 1\n";

}  // namespace lockstep::testing
