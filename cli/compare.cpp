#include "sim/report/compare.h"

#include <memory>

#include "cli/commands.h"
#include "cli/output.h"
#include "sim/records/result.h"

namespace lockstep::cli {
namespace {

struct CompareOptions {
  std::string a, b;
};

ExitCode compare_files(const CompareOptions& options) {
  const Prediction a = read_result(options.a);
  const Prediction b = read_result(options.b);
  print(compare_table(a, b) + "\nNext: lockstep plot " + options.a + " " + options.b +
        " -o plots\n");
  return ExitCode::done;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("compare", "Two results side by side");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("A", options->a, "Result (JSON) that is the measure")->required();
  command->add_option("B", options->b, "Result (JSON) that is compared with it")->required();
  command->footer(
      "Example:\n  lockstep simulate s.yaml --json a.json\n"
      "  lockstep simulate s.yaml --set strategy.kind=all_reduce --json b.json\n"
      "  lockstep compare a.json b.json");
  command->callback([&action, options] { action = [options] { return compare_files(*options); }; });
}

}  // namespace lockstep::cli
