#include "sim/report/split_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/core/units.h"
#include "sim/report/columns.h"

namespace lockstep {
namespace {

std::string joined(const std::vector<int>& shares) {
  return fmt::format("{}", fmt::join(shares, " + "));
}

std::string times_of(const std::vector<Time>& times) {
  std::vector<std::string> texts;
  for (const Time time : times) texts.push_back(ms(time));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string rounds_table(const SplitAnswer& answer) {
  Columns columns;
  columns.row({"round", "shares", "ms each", "apart"});
  const auto row = [&columns](const std::string& name, const SplitRound& round) {
    columns.row({name, joined(round.shares), times_of(round.times),
                 fmt::format("{:.1f}%", 100 * apart(round.times))});
  };
  for (std::size_t i = 0; i < answer.rounds.size(); ++i) {
    row(fmt::to_string(i + 1), answer.rounds[i]);
  }
  row("best", answer.best);
  return columns.text();
}

std::string choices_table(const SplitAnswer& answer) {
  Columns columns;
  columns.row({"workers", "shares of a host", "step ms", "samples/s", "left out"});
  for (const SplitChoice& choice : answer.choices) {
    columns.row({fmt::to_string(choice.workers), joined(choice.shares), ms(choice.point.step.mean),
                 fmt::format("{:.1f}", choice.point.throughput),
                 choice.without.empty() ? "-" : choice.without});
  }
  return columns.text();
}

/// Whether all together are faster than without some, for each of them.
std::string verdicts(const SplitAnswer& answer) {
  std::string text;
  const double all = answer.choices.front().point.throughput;
  for (std::size_t i = 1; i < answer.choices.size(); ++i) {
    const SplitChoice& choice = answer.choices[i];
    const double gain = all / choice.point.throughput - 1;
    text += fmt::format("{} {} worth having: {:+.1f} % samples/s with it.\n", choice.without,
                        gain > 0 ? "is" : "is not", 100 * gain);
  }
  return text;
}

std::string ways(const SplitAnswer& answer) {
  if (!answer.combine) return "";
  const auto& [on_device, on_host] = *answer.combine;
  std::string text =
      fmt::format("Combining all gradients takes {} on the device and {} on the host",
                  to_string(on_device), to_string(on_host));
  if (answer.overtakes) {
    text += fmt::format("; one overtakes the other at {}", to_string(*answer.overtakes));
  } else {
    text += fmt::format("; the {} is faster from 1 KiB to 1 GiB",
                        on_device <= on_host ? "device" : "host");
  }
  return text + ".\n";
}

}  // namespace

std::string to_table(const SplitAnswer& answer) {
  const double cost =
      answer.steady > Time{} ? answer.varying.seconds() / answer.steady.seconds() - 1 : 0;
  return fmt::format(
      "{} samples a host over {}\n\n{}\n{}\n{}Variability costs {:.1f} %: a step takes the mean of "
      "the maxima, {}, not the maximum of the means, {}.\n{}",
      answer.samples, fmt::join(answer.devices, ", "), rounds_table(answer), choices_table(answer),
      verdicts(answer), 100 * cost, to_string(answer.varying), to_string(answer.steady),
      ways(answer));
}

}  // namespace lockstep
