#include "cli/commands.h"

int main(int argc, char** argv) {
  return static_cast<int>(lockstep::cli::run(argc, argv));
}
