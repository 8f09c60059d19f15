#include "runner/measure/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "runner/models/zoo.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

constexpr const char* kExample =
    "Example: lockstep-measure --workers 2 --models vgg11 --batches 16,32 -o measured\n"
    "Next:    lockstep calibrate measured/measurement.json -o calibration.json\n"
    "Under torchrun, mpirun or srun every worker runs the same command; RANK, WORLD_SIZE,\n"
    "MASTER_ADDR and MASTER_PORT are read.";

/// `--demo` is a set of values, which other flags may still change.
void take_demo_values(MeasureOptions& options) {
  options.models = {"small_cnn", "vgg11"};
  options.batches = {16, 32};
  options.steps = 20;
  options.budget_seconds = 165;
}

bool asks_for_demo(int argc, const char* const* argv) {
  const auto* end = argv + argc;
  return std::find(argv, end, std::string("--demo")) != end;
}

}  // namespace

MeasureOptions parse_options(int argc, const char* const* argv) {
  MeasureOptions options;
  if (asks_for_demo(argc, argv)) take_demo_values(options);
  bool demo = false;
  CLI::App app{"Measures this machine for lockstep: profiles by layer, collectives, real runs.",
               "lockstep-measure"};
  app.footer(kExample);
  app.set_version_flag("--version", std::string("lockstep-measure ") + LOCKSTEP_VERSION);
  app.add_flag("--demo", demo, "small_cnn and vgg11 at batch 16 and 32, at most three minutes");
  app.add_option("--models,--model", options.models, "networks to train")
      ->delimiter(',')
      ->check(CLI::IsMember(model_names()))
      ->capture_default_str();
  app.add_option("--batches,--batch", options.batches, "samples per worker and step")
      ->delimiter(',')
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--strategies,--strategy", options.strategies, "of single, ddp")
      ->delimiter(',')
      ->check(CLI::IsMember({"single", "ddp"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "of cpu, cuda (one worker per GPU, 1 .. --workers)")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--workers", options.workers,
                 "processes to start on this host (0: 2 on cores, as many as GPUs)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "compute threads of a worker (0: cores / workers)")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "timed steps of a run and repeat")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, "times that the workers are started anew")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--budget", options.budget_seconds, "seconds in all (0: as long as it takes)")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--silence", options.silence_seconds,
                 "seconds without progress after which workers are taken to hang")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of parameters and samples")->capture_default_str();
  app.add_option("--data", options.data, "of synthetic, fashion-mnist")
      ->check(CLI::IsMember({"synthetic", "fashion-mnist"}))
      ->capture_default_str();
  app.add_option("--data-dir", options.data_directory, "folder of the data set's files");
  app.add_option("-o,--out", options.out, "folder for what is measured")->capture_default_str();
  app.add_option("--block", options.block_ms, "milliseconds of steps in a timed block on GPUs")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_flag("--verbose", options.verbose, "say each thing that is measured, on stderr");
  app.add_option("--repeat", options.repeat)->group("");
  app.add_option("--visit", options.visit)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));  // --help, --version
    throw InputError({}, "", error.what(), "lockstep-measure --help shows the flags");
  }
  if (options.workers == 0 && options.device == "cpu") options.workers = 2;
  options.command = "lockstep-measure";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--repeat" || word == "--visit") {
      ++i;
    } else if (word.starts_with("/")) {
      // A record tells what was run, not where somebody keeps files.
      options.command += " " + std::filesystem::path(word).filename().string();
    } else {
      options.command += " " + word;
    }
  }
  return options;
}

}  // namespace lockstep::runner
