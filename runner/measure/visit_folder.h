#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/measure/launcher.h"
#include "runner/measure/options.h"
#include "runner/measure/visit_record.h"

namespace lockstep::runner {

/// Of the visit that was last begun in that folder.
std::optional<VisitRecord> visit_in(const std::string& out);

/// A new visit, or with --resume the one that is there. InputError where there is none to resume,
/// where it had other flags, and where a new one would take the place of an unfinished one.
VisitRecord open_visit(const MeasureOptions& options);

/// A visit that could not begin leaves nothing.
void forget_visit(const std::string& out);

/// Says how long a visit takes where one with the same flags has been finished in that folder;
/// false where none has.
bool print_earlier_plan(const MeasureOptions& options);

/// That what was measured before a visit broke off is kept, and how to go on.
std::string what_is_kept(const VisitRecord& record, const MeasureOptions& options,
                         const std::vector<std::string>& arguments);

/// Notes that a visit is finished, whose results are written, and removes its parts.
void close_visit(VisitRecord& record, const std::string& out);

/// Puts together what was done before a visit broke off, and tells what is kept and how to go on.
/// Complete results of an earlier visit stay as they are.
std::string keep_visit(const MeasureOptions& options, int workers, const LaunchResult& result,
                       const std::vector<std::string>& arguments);

/// Puts all together, writes the results, removes the parts, and prints the closing screen.
void finish_visit(VisitRecord record, const MeasureOptions& options, int workers);

}  // namespace lockstep::runner
