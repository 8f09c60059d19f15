#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace lockstep::cli {

/// Standard output; writes are gathered until flush_output.
std::ostream& output_stream();
void print(std::string_view text);

/// Throws RunError where what was printed could not be written (a closed pipe, a full disk).
void flush_output();

/// "lockstep: message" on standard error, in one line.
void report_error(std::string_view message);

/// Throws InputError unless a file can be written at `path`; to be called before long work and
/// before anything else is written. Empty paths are no files.
void require_writable(const std::string& path);

}  // namespace lockstep::cli
