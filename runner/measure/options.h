#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runner/measure/precision.h"
#include "sim/records/run.h"

namespace lockstep::runner {

/// What `lockstep-measure` is asked to do.
struct MeasureOptions {
  std::vector<std::string> models{"small_cnn"};
  std::vector<int> batches{32};  ///< per worker
  bool search_batches = false;   ///< instead: 32, 128, ... as long as they fit into memory
  Precision precision = Precision::fp32;
  std::vector<std::string> strategies{"single", "ddp"};
  StrategyOptions of_strategies;  ///< of those that take any; `kind` does not count
  std::vector<int> split;         ///< of heterogeneous: samples of each worker; empty: even
  bool split_measured = false;    ///< found by their speeds
  std::vector<bool> combine_on_host{false};  ///< of heterogeneous beside GPUs: each way in turn
  bool only_collectives = false;             ///< nothing but their tables
  Compute compute = Compute::real;
  int slow_motion = 1;      ///< a replay waits so many times as long as the calibration says
  std::string calibration;  ///< file: only runs, to be compared with it, or replayed from it
  std::vector<InjectedStraggler> stragglers;
  Bandwidth link;     ///< of each host, as the user states it, for the records; zero: not stated
  Time link_latency;  ///< of each link, as the user states it
  std::vector<SlowLink> slow_links;
  std::string device = "cpu";  ///< or "cuda"
  int workers = 0;      ///< 0: two on cores, one per GPU on GPUs (which then take 1 .. all in turn)
  int cpu_workers = 0;  ///< on cores beside the GPUs, the last ranks; at most one
  int threads = 0;      ///< compute threads per worker (beside GPUs: on cores); 0: cores / workers
  int steps = 30;       ///< timed steps of a run, per repeat; fewer where the budget ends before
  int repeats = 3;
  Time budget;                  ///< of measuring in all; 0: as long as it takes
  bool budget_is_wish = false;  ///< one repeat is measured even where it does not fit
  int silence_seconds = 25;     ///< after which a worker that does nothing is taken to hang
  std::uint64_t seed = 1;
  std::string data = "synthetic";
  std::string data_directory;
  int loaders = 0;  ///< threads of a worker that load batches ahead
  std::string out = "measured";
  int block_ms = 600;    ///< of steps, in each timed block on GPUs
  bool verbose = false;  ///< a line to stderr for each thing that is measured
  bool dry_run = false;  ///< say what would be measured and how long it takes
  bool resume = false;   ///< go on with what `out` holds
  std::string command;   ///< as it was typed, for the records
  std::map<std::string, std::string> settings;  ///< value of each flag that decides what is done

  // What the launcher tells the workers that it starts.
  int repeat = 0;
  std::string visit;  ///< id of the whole measurement
};

/// Processes beside the workers: servers, where a strategy has some.
int servers_beside(const MeasureOptions& options);

/// A strategy with those of the options that it takes.
StrategyOptions options_of(const std::string& kind, const MeasureOptions& options);

/// Parses and checks a command line. Prints and leaves by itself for --help and --version; throws
/// InputError, in one line, for a flag or a value that cannot be.
MeasureOptions parse_options(int argc, const char* const* argv);

}  // namespace lockstep::runner
