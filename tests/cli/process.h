#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/records/temporary_folder.h"

namespace lockstep::testing {

struct Finished {
  int exit_code = -1;  ///< -1: ended by a signal
  std::string out, err;
  /// One line, and it is not empty.
  bool one_error_line() const {
    return err.size() > 1 && std::ranges::count(err, '\n') == 1 && err.back() == '\n';
  }
};

/// Runs `lockstep ARGUMENTS` through the shell.
inline Finished lockstep_command(const std::string& arguments, const std::string& before = "") {
  const TemporaryFolder folder;
  const std::string command = before + "'" LOCKSTEP_BINARY "' " + arguments + " >'" +
                              folder.file("out") + "' 2>'" + folder.file("err") + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(folder.file("out")),
          slurp(folder.file("err"))};
}

}  // namespace lockstep::testing
