#pragma once

#include <string>

namespace lockstep::runner {

/// Removes what earlier measurements left in `out`/parts: records, by their names. What else is
/// there is not ours and stays, and so does the folder then. A folder that is not there is fine.
/// Throws InputError where `out`/parts is a link or no folder, or cannot be read.
void remove_own_parts(const std::string& out);

}  // namespace lockstep::runner
