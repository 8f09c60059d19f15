#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The whole file as bytes. Throws InputError where it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Writes `content` to `path` whole or not at all: to a temporary name in the same folder, flushed
/// to the device, then renamed. Throws InputError where the folder is missing or not writable,
/// RunError where writing fails (a full disk); either way an older file at `path` stays as it was.
void write_file(const std::string& path, std::string_view content);

}  // namespace lockstep
