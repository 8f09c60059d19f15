#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// Larger files are refused: what we read by hand is a few hundred kilobytes.
inline constexpr std::size_t kLargestFile = std::size_t{64} << 20;

/// The whole file as bytes. Throws InputError where it is missing, a folder, unreadable or larger
/// than `limit`.
std::string read_file(const std::string& path, std::size_t limit = kLargestFile);

/// Writes `content` to `path` whole or not at all: to a temporary name in the same folder, flushed
/// to the device, then renamed. Throws InputError where the folder is missing or not writable,
/// RunError where writing fails (a full disk); either way an older file at `path` stays as it was.
void write_file(const std::string& path, std::string_view content);

}  // namespace lockstep
