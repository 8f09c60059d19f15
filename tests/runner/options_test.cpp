#include "runner/measure/options.h"

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep::runner {
namespace {

MeasureOptions parse(std::vector<const char*> words) {
  words.insert(words.begin(), "lockstep-measure");
  return parse_options(static_cast<int>(words.size()), words.data());
}

}  // namespace

TEST_CASE("A step computes in fp32 unless it is told otherwise") {
  CHECK(parse({}).precision == Precision::fp32);
  CHECK(parse({}).settings.at("precision") == "fp32");
  CHECK(parse({"--precision", "bf16"}).precision == Precision::bf16);
  CHECK(parse({"--precision", "bf16", "--device", "cuda"}).precision == Precision::bf16);
  CHECK(parse({"--precision", "tf32", "--device", "cuda"}).precision == Precision::tf32);
  CHECK(parse({"--precision", "tf32", "--device", "cuda"}).settings.at("precision") == "tf32");
  CHECK_THROWS_WITH(parse({"--precision", "tf32"}), Contains("tf32 is arithmetic of GPUs"));
  CHECK_THROWS_AS(parse({"--precision", "tf32"}), InputError);
  CHECK_THROWS_AS(parse({"--precision", "fp16"}), InputError);
}

TEST_CASE("Batches are a list, or searched on GPUs") {
  CHECK(parse({}).batches == std::vector<int>{32});
  CHECK(parse({}).settings.at("batches") == "32");
  CHECK(parse({"--batches", "2,64,1048576"}).batches == std::vector<int>{2, 64, 1048576});
  CHECK(parse({"--batches", "16,64"}).settings.at("batches") == "16,64");
  CHECK(parse({"--demo"}).batches == std::vector<int>{16, 32});
  CHECK(parse({"--demo"}).settings.at("batches") == "16,32");
  CHECK(parse({"--demo", "--batches", "8"}).batches == std::vector<int>{8});
  CHECK_FALSE(parse({"--batches", "64"}).search_batches);
  const MeasureOptions searching = parse({"--batches", "auto", "--device", "cuda"});
  CHECK(searching.search_batches);
  CHECK(searching.settings.at("batches") == "auto");
  CHECK_THROWS_WITH(parse({"--batches", "auto"}), Contains("auto fills the memory of GPUs"));
  for (const char* wrong : {"0", "1", "1048577", "many", "32,auto", "8.5", "32x"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(parse({"--batches", wrong, "--device", "cuda"}),
                      Contains("is no number of samples") && Contains("or auto"));
  }
}

TEST_CASE("Visits to GPUs are planned and resumed, and keep to no budget") {
  CHECK(parse({"--device", "cuda", "--dry-run"}).dry_run);
  CHECK(parse({"--device", "cuda", "--resume"}).resume);
  CHECK_THROWS_WITH(parse({"--device", "cuda", "--resume", "--dry-run"}), Contains("one of them"));
  CHECK_THROWS_WITH(parse({"--device", "cuda", "--budget", "1min"}), Contains("--repeats say"));
}

TEST_CASE("Only a replay can be in slow motion") {
  const char* calibration = "calibration.json";
  CHECK(parse({"--compute", "replay", "--calibration", calibration}).slow_motion == 1);
  CHECK(parse({"--compute", "replay", "--calibration", calibration, "--slow-motion", "4"})
            .slow_motion == 4);
  CHECK_THROWS_WITH(parse({"--slow-motion", "4"}), Contains("--compute replay"));
  CHECK_THROWS_AS(
      parse({"--compute", "replay", "--calibration", calibration, "--slow-motion", "0"}),
      InputError);
}

TEST_CASE("Variants of networks are chosen by flags") {
  CHECK(parse({"--dropout", "--models", "gpt2_small,small_gpt"}).models ==
        std::vector<std::string>{"gpt2_small_dropout", "small_gpt_dropout"});
  CHECK(parse({"--no-batchnorm", "--models", "resnet18_cifar"}).models ==
        std::vector<std::string>{"resnet18_cifar_no_batchnorm"});
  CHECK_THROWS_WITH(parse({"--dropout", "--models", "resnet50"}), Contains("no such variant"));
}

TEST_CASE("A worker on cores stands beside GPUs in one strategy") {
  const MeasureOptions options = parse({"--device", "cuda", "--strategies", "heterogeneous,single",
                                        "--cpu-workers", "1", "--combine", "device,host"});
  CHECK(options.cpu_workers == 1);
  CHECK(options.combine_on_host == std::vector<bool>{false, true});
  CHECK(parse({}).combine_on_host == std::vector<bool>{false});
  const auto refused = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"--device", "cuda", "--cpu-workers", "1", "--strategies"});
    CHECK_THROWS_AS(parse(words), InputError);
  };
  refused({"ddp"});
  refused({"single"});
  refused({"heterogeneous,ddp"});
  refused({"heterogeneous", "--batches", "auto"});
  refused({"heterogeneous", "--data", "fashion-mnist"});
  refused({"heterogeneous", "--combine", "nowhere"});
  refused({"heterogeneous", "--cpu-workers", "2"});
  CHECK_THROWS_WITH(parse({"--strategies", "heterogeneous", "--cpu-workers", "1"}),
                    Contains("stand beside GPUs"));
  CHECK_THROWS_WITH(parse({"--strategies", "heterogeneous", "--device", "cuda"}),
                    Contains("--cpu-workers 1"));
  CHECK_THROWS_WITH(parse({"--strategies", "heterogeneous", "--combine", "host"}),
                    Contains("--device cuda --cpu-workers 1"));
}

}  // namespace lockstep::runner
