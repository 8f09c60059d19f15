#pragma once

#include "runner/measure/options.h"

namespace lockstep::runner {

/// Whether flags that are right each by itself go together; InputError in one line where they do
/// not.
void check_together(const MeasureOptions& options);
/// The same of servers; needs options.settings, and a number of workers on cores.
void check_servers(const MeasureOptions& options);

}  // namespace lockstep::runner
