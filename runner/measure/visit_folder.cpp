#include "runner/measure/visit_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runner/measure/closing.h"
#include "runner/measure/origin.h"
#include "runner/measure/parts_folder.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

namespace fs = std::filesystem;

/// "lockstep-measure ... --resume", to be typed again.
std::string resume_command(const std::vector<std::string>& arguments) {
  std::string command = "lockstep measure";
  for (const std::string& word : arguments) {
    if (word == "--resume") continue;
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_=,./:+@%") == std::string::npos;
    command += plain ? " " + word : " '" + word + "'";
  }
  return command + " --resume";
}

VisitRecord visit_to_resume(const MeasureOptions& options) {
  const auto before = visit_in(options.out);
  if (!before) {
    throw InputError({.file = options.out}, "--resume", "there is no measurement to go on with",
                     "without --resume one begins there");
  }
  const std::string differs = difference(before->settings, options.settings);
  if (!differs.empty()) {
    throw InputError({.file = visit_file(options.out)}, "--resume", differs,
                     "the flags with which it began, or another --out");
  }
  return *before;
}

VisitRecord begin_visit(const MeasureOptions& options) {
  const std::string& out = options.out;
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw InputError({.file = out}, "--out", error.message());
  const auto before = visit_in(out);
  if (before && !before->finished && !before->done.empty()) {
    throw InputError({.file = out}, "--out",
                     fmt::format("holds an unfinished measurement of {} ({} of it done)",
                                 before->date, span(before->spent)),
                     "--resume goes on with it; else take another folder, or remove this one");
  }
  remove_own_parts(out);
  VisitRecord record;
  record.id = "visit-" + utc_now(/*compact=*/true);
  record.date = utc_now();
  record.settings = options.settings;
  record.repeats = options.repeats;
  record.older = fs::exists(out + "/measurement.json") || fs::exists(out + "/runs.json");
  write_visit(record, visit_file(out));
  return record;
}

/// Notes the failure in the run that was under way, if it had been saved before.
void note_failure(Part& whole, const LaunchResult& result) {
  const auto run = std::ranges::find(whole.runs, result.run, &Run::id);
  if (run == whole.runs.end()) return;
  int steps = 0;
  for (const RunRepeat& repeat : run->repeats) steps += repeat.steps;
  run->failure = Failure{.rank = result.rank, .what = result.what, .after_steps = steps};
}

}  // namespace

std::optional<VisitRecord> visit_in(const std::string& out) {
  std::error_code ignored;
  if (!fs::exists(visit_file(out), ignored)) return std::nullopt;
  return read_visit(visit_file(out));
}

VisitRecord open_visit(const MeasureOptions& options) {
  return options.resume ? visit_to_resume(options) : begin_visit(options);
}

bool print_earlier_plan(const MeasureOptions& options) {
  const auto before = visit_in(options.out);
  if (!before || !before->finished) return false;
  if (!difference(before->settings, options.settings).empty()) return false;
  print_plan(*before, options, /*earlier=*/true);
  return true;
}

std::string what_is_kept(const VisitRecord& record, const MeasureOptions& options,
                         const std::vector<std::string>& arguments) {
  return fmt::format("what was measured before ({}) is kept in {}; go on with: {}",
                     span(record.spent), options.out, resume_command(arguments));
}

void close_visit(VisitRecord& record, const std::string& out) {
  record.finished = true;
  record.older = false;
  write_visit(record, visit_file(out));
  remove_own_parts(out);
}

void forget_visit(const std::string& out) {
  remove_own_parts(out);
  std::error_code ignored;
  fs::remove(visit_file(out), ignored);
}

std::string keep_visit(const MeasureOptions& options, int workers, const LaunchResult& result,
                       const std::vector<std::string>& arguments) {
  try {
    const VisitRecord record = read_visit(visit_file(options.out));
    if (record.done.empty()) {
      forget_visit(options.out);
      return "nothing was measured";
    }
    if (!record.older) {
      Part whole = merge_parts(options.out, record.done, workers);
      if (result.rank >= 0) note_failure(whole, result);
      write_results(whole, options.out);
    }
    return what_is_kept(record, options, arguments);
  } catch (const std::exception& error) {
    return fmt::format("what was measured before is kept in {}/parts ({})", options.out,
                       error.what());
  }
}

void finish_visit(VisitRecord record, const MeasureOptions& options, int workers) {
  const Part whole = merge_parts(options.out, record.done, workers);
  write_results(whole, options.out);
  close_visit(record, options.out);
  print_closing(whole, record, options);
}

}  // namespace lockstep::runner
