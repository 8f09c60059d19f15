#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/time.h"
#include "sim/records/calibration.h"
#include "sim/scenario/config_node.h"

// Published experiments beside what predicts them. A case file holds the figures as printed, the
// scenario that they are of, what had to be assumed, and at most two constants that are found from
// points marked `fitted`.
namespace lockstep {

/// What a figure is: seconds of a step or an epoch, samples a second, or a ratio to one worker.
enum class PublishedQuantity : std::uint8_t { time, epoch, throughput, speedup, efficiency };

/// A point that a fit uses is `fitted`; one that contradicts itself or others is `suspect`; what
/// nothing here can predict is `unpredicted`. Errors are averaged over `predicted` alone.
enum class PublishedRole : std::uint8_t { fitted, predicted, suspect, unpredicted };

struct PublishedPoint {
  PublishedQuantity quantity = PublishedQuantity::time;
  int workers = 1;
  double published = 0;  ///< in seconds, samples a second, or as a ratio
  PublishedRole role = PublishedRole::predicted;
  bool base = false;  ///< the step of one worker, to which the model's profile is scaled; fitted
  std::string why;    ///< it is suspect or not predicted
  Location at;
};

/// Points that one scenario predicts, at several numbers of workers.
struct PublishedExperiment {
  std::string name;
  ConfigNode scenario;  ///< the case's, with what this experiment sets; name and workers filled in
  std::vector<std::string> constants;  ///< that apply; by name
  std::vector<PublishedPoint> points;
  Location at;
};

/// Found from fitted points: a bandwidth or a time.
struct PublishedConstant {
  std::string name;
  std::string set;  ///< a change of the scenario, "platform.network.bandwidth={}"
  bool bandwidth = false;
  double low = 0, high = 0;  ///< bytes per second, or seconds
};

/// Something that figures show and predictions must.
struct PublishedShape {
  enum class Check : std::uint8_t {
    slower,              ///< the step at the last of `workers` is longer than at each of the others
    no_gain,             ///< it is at most `within` shorter
    falls,               ///< every step is shorter than the one before
    first_gain_largest,  ///< no later step gains as much on the one before as the second
    mean_of_maxima,      ///< the mean over `steps` of the longest exceeds the largest mean
  };
  std::string says;
  Check check = Check::slower;
  std::string experiment;
  std::vector<int> workers;
  double within = 0;
  std::vector<std::vector<Time>> steps;  ///< measured, by step and worker
  Location at;
};

struct PublishedCase {
  std::string name, source;
  std::vector<std::string> notes, assumptions;
  std::int64_t samples = 0;  ///< of an epoch; zero: no figure is of one
  std::vector<PublishedConstant> constants;
  std::vector<PublishedExperiment> experiments;
  std::vector<PublishedShape> shapes;
};

/// Throws InputError for everything that is not exactly right.
PublishedCase read_published(const std::string& file);
PublishedCase parse_published(const std::string& text, const std::string& file);

struct PublishedRow {
  std::string case_name, experiment;
  int workers = 1;
  PublishedQuantity quantity = PublishedQuantity::time;
  PublishedRole role = PublishedRole::predicted;
  double published = 0;
  std::optional<double> predicted;
  std::string why;
  double error() const { return predicted.value_or(published) / published - 1; }
};

struct PublishedShapeRow {
  std::string case_name, says;
  bool holds = false;
  std::string seen;  ///< "1.12 s, 1.05 s, 1.30 s"
};

struct FittedConstant {
  std::string case_name, name;
  std::string value;             ///< "318 MB/s"
  bool at_end_of_range = false;  ///< nothing within it fitted better
};

struct PublishedReport {
  std::vector<PublishedCase> cases;
  std::vector<FittedConstant> constants;
  std::vector<PublishedRow> rows;
  std::vector<PublishedShapeRow> shapes;
};

/// The median of absolute errors of predicted points; none where nothing is predicted.
std::optional<double> median_error(const PublishedReport& report);

/// Reads a calibration, by its path.
using CalibrationSource = std::function<const Calibration&(const std::string&)>;

/// Fits the constants of each case, predicts its points and looks at its shapes. A point is suspect
/// also where its efficiency is above 105 %, where it is 5 % more efficient than one with fewer
/// workers, and where a speed-up is 2 % away from what the experiment's own figures say; InputError
/// where such a point was to be fitted.
PublishedReport predict_published(const std::vector<PublishedCase>& cases,
                                  const CalibrationSource& calibrations);

std::string to_table(const PublishedReport& report);
void write_published(const PublishedReport& report, const std::string& file);

}  // namespace lockstep
