#include "cli/commands.h"
#include "cli/heap.h"

int main(int argc, char** argv) {
  lockstep::cli::prepare_heap();
  return static_cast<int>(lockstep::cli::run(argc, argv));
}
