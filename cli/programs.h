#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::cli {

/// The folder of the running program.
std::filesystem::path program_folder();

/// Becomes `program` with these arguments; returns only where that fails, with errno set.
void become(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace lockstep::cli
