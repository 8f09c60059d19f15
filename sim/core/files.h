#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

/// Larger files are refused: what we read by hand is a few hundred kilobytes.
inline constexpr std::size_t kLargestFile = std::size_t{64} << 20;

/// The whole file as bytes. Throws InputError where it is missing, a folder, a pipe or a device
/// (which may never end), unreadable or larger than `limit`.
std::string read_file(const std::string& path, std::size_t limit = kLargestFile);

/// Where writing to `path` leads: symbolic links followed, the last one perhaps to a file that does
/// not exist yet. Links to open files ("/dev/stdout") end at "/proc/self/fd/1". Throws InputError
/// where links go round.
std::string follow_links(const std::string& path);

/// Whether what `target` names is written to as it is: a pipe, a device, or a file by its open
/// descriptor.
bool is_written_through(const std::string& target);

/// Writes `content` to the file that `path` leads to, whole or not at all: to a temporary name in
/// the same folder, flushed to the device, then renamed; signals that would end the program wait
/// until then. What `is_written_through` has no older content to keep. Throws InputError where the
/// folder is missing or not writable, RunError where writing fails (a full disk); either way an
/// older file at `path` stays as it was.
void write_file(const std::string& path, std::string_view content);

}  // namespace lockstep
