#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

/// Standard output; writes are gathered until flush_output.
std::ostream& output_stream();
void print(std::string_view text);

/// Throws RunError where what was printed could not be written (a closed pipe, a full disk).
void flush_output();

/// "lockstep: message" on standard error, in one line.
void report_error(std::string_view message);

/// Throws InputError unless a file can be written at every path of `outputs`, and none of them is
/// another one or one of `inputs`, under whatever name: to be called with all files of a command
/// before long work and before anything is written. Empty paths are no files.
void check_files(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

}  // namespace lockstep::cli
