#include "runner/measure/parts_folder.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

namespace fs = std::filesystem;

/// "repeat0-...-rank1.runs.json" of workers on cores, "2-0-1.measurement.json" of GPUs.
bool is_part(const fs::directory_entry& entry) {
  constexpr std::string_view kEndings[] = {".measurement.json", ".runs.json", ".runs.samples.json"};
  const std::string name = entry.path().filename().string();
  const bool begins = name.starts_with("repeat") || (name[0] >= '0' && name[0] <= '9');
  const bool ends = std::ranges::any_of(
      kEndings, [&name](std::string_view ending) { return name.ends_with(ending); });
  std::error_code error;
  return begins && ends && entry.symlink_status(error).type() == fs::file_type::regular;
}

}  // namespace

void remove_own_parts(const std::string& out) {
  const fs::path folder = fs::path(out) / "parts";
  std::error_code error;
  const fs::file_type type = fs::symlink_status(folder, error).type();
  if (type == fs::file_type::not_found) return;
  if (type != fs::file_type::directory) {
    throw InputError({.file = folder.string()}, "--out", "is no folder",
                     "parts of a measurement go there: choose another --out");
  }
  std::vector<fs::path> ours;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_part(*entry)) ours.push_back(entry->path());
  }
  if (error) throw InputError({.file = folder.string()}, "--out", error.message());
  for (const fs::path& file : ours) fs::remove(file, error);
  fs::remove(folder, error);  // only if it is empty now
}

}  // namespace lockstep::runner
