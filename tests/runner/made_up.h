#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/records/calibration.h"
#include "tests/records/temporary_folder.h"

namespace lockstep::testing {

/// A network of one layer, to be replayed: a step takes 1 ms at batch 4 and 100 ms at batch 8. It
/// needs no core, and lasts as long on a crowded machine as on an idle one.
inline std::string made_up_calibration(const TemporaryFolder& folder) {
  Calibration calibration;
  calibration.id = "made-up";
  calibration.origin.machine.cores = 2;
  calibration.reference = Time::milliseconds(10);
  for (const auto& [batch, us] : {std::pair{4, 500}, std::pair{8, 50'000}}) {
    const Cost cost{.host = {}, .device = Time::microseconds(us)};
    Profile profile;
    profile.model = "one_layer";
    profile.batch = batch;
    profile.layers = {{.name = "a",
                       .kind = "linear",
                       .forward = cost,
                       .backward = cost,
                       .backward_order = 0,
                       .parameters = {{"weight", {10'000}, 0}},
                       .buffers = {},
                       .output = {}}};
    profile.step = Time::microseconds(2 * us);
    calibration.profiles.push_back(profile);
  }
  const std::string file = folder.file("calibration.json");
  write_calibration(calibration, file);
  return file;
}

/// Flags of a measurement that replays it: first a short piece, then a long one.
inline std::vector<std::string> replay(const TemporaryFolder& folder,
                                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--compute",
                                 "replay",
                                 "--calibration",
                                 made_up_calibration(folder),
                                 "--model",
                                 "one_layer",
                                 "--batch",
                                 "4,8",
                                 "--strategies",
                                 "ddp",
                                 "-o",
                                 folder.file("out")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace lockstep::testing
