#include "sim/scenario/variability.h"

#include <fmt/core.h>

#include <charconv>
#include <functional>
#include <stdexcept>
#include <string_view>

#include "sim/core/error.h"
#include "sim/core/files.h"
#include "sim/scenario/fields.h"

namespace lockstep {
namespace {

using Draws = Variability::Kind;
constexpr std::string_view kDrawKinds[] = {"log_normal", "pareto", "periodic", "samples"};
constexpr double kMostFactor = 1000;
constexpr double kMostSigma = 5;
constexpr double kMostShape = 100;
constexpr int kMostEvery = 10'000;
constexpr Time kLongestDelay = Time::milliseconds(60'000);
constexpr double kLongestSample = 1e5;  // of kSampleUnit: a thousand seconds

std::string_view without_blanks(std::string_view line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  return line;
}

/// `parse` returns what a line says or throws std::invalid_argument.
std::vector<double> read_samples(const std::string& file,
                                 const std::function<double(std::string_view)>& parse) {
  constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  const std::string text = read_file(file, kMostBytes);
  Location at{.file = file, .line = 0, .column = 1, .pointer = {}};
  std::vector<double> values;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = without_blanks(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    ++at.line;
    if (line.empty() || line.front() == '#') continue;
    try {
      values.push_back(parse(line));
    } catch (const std::invalid_argument& error) {
      throw InputError(at, "", printable(error.what()), "one value a line");
    }
  }
  at.line = 0;
  if (values.empty()) throw InputError(at, "", "holds no samples", "one value a line");
  return values;
}

double factor_of_line(std::string_view line) {
  double value = 0;
  const char* begin = line.data();
  const char* end = begin + line.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !(value >= 1 / kMostFactor && value <= kMostFactor)) {
    throw std::invalid_argument(fmt::format("'{}' is not a factor from {} to {}",
                                            line.substr(0, 40), 1 / kMostFactor, kMostFactor));
  }
  return value;
}

double duration_of_line(std::string_view line) {
  const double value = parse_time(line).seconds() / kSampleUnit.seconds();
  if (value < 0 || value > kLongestSample) {
    throw std::invalid_argument(fmt::format("'{}' is not from 0ms to 1000s", line));
  }
  return value;
}

/// What all kinds of slow-downs and delays have in common. `values` reads a file of samples.
class Reader {
 public:
  Reader(const ConfigNode& node, const std::string& name) : fields_(node, name) {
    result_.kind = static_cast<Draws>(
        1 + to_choice(fields_.require("kind", "log_normal"), fields_.name_of("kind"), kDrawKinds));
  }

  Draws kind() const { return result_.kind; }
  const ConfigNode* find(std::string_view key) { return fields_.find(key); }
  const ConfigNode& require(std::string_view key, std::string_view example) {
    return fields_.require(key, example);
  }
  std::string name_of(std::string_view key) const { return fields_.name_of(key); }

  void read_shape(bool clock) {
    if (result_.kind == Draws::log_normal) {
      result_.sigma = to_number(require("sigma", "0.2, the deviation of the logarithm"),
                                name_of("sigma"), 0, kMostSigma);
    }
    if (result_.kind == Draws::pareto) read_tail();
    if (result_.kind == Draws::periodic) read_period(clock);
  }

  void read_values(std::vector<double> (*read)(const std::string&)) {
    constexpr std::string_view kOrders[] = {"drawn", "listed"};
    result_.values = read(to_path(require("file", "samples.txt"), name_of("file")));
    if (const ConfigNode* order = find("order")) {
      result_.listed = to_choice(*order, name_of("order"), kOrders) == 1;
    }
  }

  void set_least(double least) { result_.least = least; }
  void set_high(double high, double low) {
    result_.high = high;
    result_.low = low;
  }
  Variability finish() {
    fields_.finish();
    return result_;
  }

 private:
  void read_tail() {
    const ConfigNode& shape = require("shape", "3, the exponent of the tail");
    result_.shape = to_number(shape, name_of("shape"), 0, kMostShape);
    if (result_.shape > 1) return;
    throw InputError(shape.at, name_of("shape"),
                     fmt::format("a Pareto distribution of shape {} has no mean", result_.shape),
                     "above 1; above 2 it has a variance, too");
  }

  void read_period(bool clock) {
    const ConfigNode* every = find("every");
    const ConfigNode* period = find("period");
    if (period != nullptr && !clock) {
      throw InputError(period->at, name_of("period"), "by the clock there are pauses only",
                       "every: 10 (steps), or a delay");
    }
    if ((every != nullptr) == (period != nullptr)) {
      throw InputError(
          require("kind", "").at, name_of("every"),
          every != nullptr ? "a period is given too" : "missing",
          clock ? "every: 10 (steps), or period: 2s (of the clock)" : "such as every: 10 (steps)");
    }
    if (every != nullptr) {
      result_.every = static_cast<int>(to_integer(*every, name_of("every"), 1, kMostEvery));
    } else {
      result_.period = to_time(*period, name_of("period"));
      if (result_.period <= Time{}) {
        throw InputError(period->at, name_of("period"), "must be longer than nothing");
      }
    }
    if (const ConfigNode* aligned = find("aligned")) {
      result_.aligned = to_switch(*aligned, name_of("aligned"));
    }
  }

  Fields fields_;
  Variability result_;
};

Time positive(const ConfigNode& node, const std::string& name) {
  const Time time = to_time(node, name);
  if (time <= Time{}) throw InputError(node.at, name, "must be longer than nothing");
  if (time > kLongestDelay) throw InputError(node.at, name, "at most 60s");
  return time;
}

}  // namespace

std::vector<double> read_factor_samples(const std::string& file) {
  return read_samples(file, factor_of_line);
}

std::vector<double> read_duration_samples(const std::string& file) {
  return read_samples(file, duration_of_line);
}

WrittenFactor read_varying_factor(const ConfigNode& node, const std::string& name) {
  if (node.kind != ConfigNode::Kind::map) {
    return {.typical = to_number(node, name, 1 / kMostFactor, kMostFactor)};
  }
  Reader reader(node, name);
  WrittenFactor result;
  const auto number = [&](const ConfigNode& value, std::string_view key) {
    return to_number(value, reader.name_of(key), 1 / kMostFactor, kMostFactor);
  };
  reader.read_shape(/*clock=*/false);
  const std::string_view key = reader.kind() == Draws::log_normal ? "median" : "scale";
  switch (reader.kind()) {
    case Draws::log_normal:
    case Draws::pareto:
      if (const ConfigNode* value = reader.find(key)) result.typical = number(*value, key);
      break;
    case Draws::periodic:
      reader.set_high(number(reader.require("factor", "3"), "factor"), 1);
      break;
    case Draws::samples:
      reader.read_values(read_factor_samples);
      break;
    case Draws::constant:
      break;
  }
  if (const ConfigNode* least = reader.find("least")) {
    reader.set_least(number(*least, "least") / result.typical);
  }
  result.variability = reader.finish();
  return result;
}

WrittenDelay read_varying_delay(const ConfigNode& node, const std::string& name) {
  if (node.kind != ConfigNode::Kind::map) {
    const Time time = to_time(node, name);
    if (time <= Time{}) throw InputError(node.at, name, "must be longer than nothing");
    return {.typical = time};
  }
  Reader reader(node, name);
  WrittenDelay result{.typical = kSampleUnit};
  reader.read_shape(/*clock=*/true);
  const auto take = [&](std::string_view key) {
    result.typical = positive(reader.require(key, "5ms"), reader.name_of(key));
  };
  if (reader.kind() == Draws::log_normal) take("median");
  if (reader.kind() == Draws::pareto) take("scale");
  if (reader.kind() == Draws::periodic) {
    take("duration");
    reader.set_high(1, 0);
  }
  if (reader.kind() == Draws::samples) reader.read_values(read_duration_samples);
  result.variability = reader.finish();
  const Time period = result.variability.period;
  if (by_clock(result.variability) && period <= result.typical) {
    throw InputError(node.at, name,
                     fmt::format("pauses of {} every {} leave no time to work",
                                 to_string(result.typical), to_string(period)),
                     "a period longer than the pause");
  }
  return result;
}

}  // namespace lockstep
