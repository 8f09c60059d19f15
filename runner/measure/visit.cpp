#include "runner/measure/visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/measure/clock.h"
#include "runner/measure/closing.h"
#include "runner/measure/configuration.h"
#include "runner/measure/machine.h"
#include "runner/measure/parity.h"
#include "runner/measure/quick.h"
#include "runner/measure/visit_record.h"
#include "sim/core/error.h"
#include "sim/workload/profile_choice.h"

namespace lockstep::runner {

namespace {

constexpr int kParityBatch = 4;  // per worker, at most: what is checked does not depend on it

bool wants(const MeasureOptions& options, const std::string& strategy) {
  return std::ranges::find(options.strategies, strategy) != options.strategies.end();
}

/// The ones that take several workers, with their options.
std::vector<StrategyOptions> shared_strategies(const Worker& worker) {
  std::vector<StrategyOptions> shared;
  if (worker.size() == 1) return shared;
  for (const std::string& kind : worker.options.strategies) {
    if (kind == "single") continue;
    shared.push_back(options_of(kind, worker.options));
  }
  return shared;
}

/// Servers that apply one update after another: in the same order one device must get the same.
Parity check_asynchronous(Worker& worker, const std::string& model, const StrategyOptions& strategy,
                          int batch) {
  const Parity parity =
      check_update_order(model, strategy, batch, worker.options.seed, *worker.communicator,
                         *worker.device, *worker.servers, [&worker] { worker.progress.beat(); });
  if (parity.relative_l2 == 0) return parity;
  throw RunError(fmt::format(
      "parity: {} on {} workers trains {} away from one device that applies the same updates in "
      "the same order, by {:.1e} of {} steps; nothing is allowed",
      strategy.kind, worker.size(), model, parity.relative_l2, parity.steps));
}

/// Before a strategy is timed, it is checked: in the first repeat, for all of them.
Parity check(Worker& worker, const std::string& model, const StrategyOptions& strategy) {
  worker.progress.say("", fmt::format("{}: checking {} against one device", model, strategy.kind));
  const int batch = std::min(kParityBatch, *std::ranges::min_element(worker.options.batches));
  if (strategy.kind == "parameter_server" && strategy.staleness != 0) {
    return check_asynchronous(worker, model, strategy, batch);
  }
  StrategyOptions checked = strategy;
  // What will be measured is not known yet: unequal shares.
  for (int rank = 0;
       strategy.kind == "heterogeneous" && strategy.split.empty() && rank < worker.size(); ++rank) {
    checked.split.push_back(batch + rank);
  }
  const Parity parity = check_parity(
      model, checked, batch, worker.options.seed, *worker.communicator, *worker.device,
      [&worker] { worker.progress.beat(); }, worker.servers.get());
  const double bound = parity_bound(strategy, worker.size());
  if (!(parity.relative_l2 <= bound)) {
    throw RunError(
        fmt::format("parity: {} on {} workers trains {} away from one device by {:.1e} "
                    "of a step, in {} steps; {:.0e} is allowed",
                    strategy.kind, worker.size(), model, parity.relative_l2, parity.steps, bound));
  }
  return parity;
}

std::map<std::string, Parity> check_all(Worker& worker, const std::string& model) {
  std::map<std::string, Parity> parity;
  if (worker.options.repeat > 0 || worker.replays()) return parity;
  for (const StrategyOptions& strategy : shared_strategies(worker)) {
    parity[strategy.kind] = check(worker, model, strategy);
  }
  return parity;
}

/// What a worker of this model at this batch waits for, `beside` workers on its host.
std::optional<Profile> replayed(const Worker& worker, const std::string& model, int batch,
                                int beside) {
  if (!worker.replays()) return std::nullopt;
  return profile_to_replay(*worker.calibration, model, worker.options.precision, batch, beside,
                           worker.options.slow_motion);
}

/// One repeat, by one worker; rank 0 keeps the record and decides.
class Visit {
 public:
  explicit Visit(Worker& worker)
      : worker_(worker),
        options_(worker.options),
        keeps_record_(worker.first() && !options_.dry_run) {
    record_.repeats = options_.repeats;
    record_.start = process_age();
    if (keeps_record_) {
      const Time start = record_.start;
      record_ = read_visit(visit_file(options_.out));
      if (record_.done.empty()) record_.start = start;
    }
    spent_before_ = record_.spent;
    worker_.options.repeats = static_cast<int>(worker_.agree(record_.repeats));
  }

  void run() {
    if (options_.only_collectives) {
      measure_piece("collectives", [this] { measure_collectives(worker_); });
      if (record_.pieces.empty()) record_.pieces = as_they_took();
      keep_record();
      return finish();
    }
    refuse_unless(record_.start, "starting the workers alone took");
    if (!worker_.calibration) measure_piece("machine", [this] { measure_machine(worker_); });
    if (worker_.agree(record_.pieces.empty() ? 1 : 0) != 0) plan();
    if (options_.dry_run) return finish();
    for (const std::string& model : options_.models) {
      for (const int batch : options_.batches) {
        measure_piece(piece_name(model, batch), [&] {
          Configuration wanted = configuration(model, batch);
          wanted.parity = parity_of(model);
          wanted.budget = share();
          measure_configuration(worker_, wanted);
        });
      }
    }
    finish();
  }

 private:
  Time spent() const { return spent_before_ + process_age(); }

  static std::string piece_name(const std::string& model, int batch) {
    return fmt::format("{}-b{}", model, batch);
  }

  Configuration configuration(const std::string& model, int batch) const {
    return {.model = model,
            .batch = batch,
            .single = wants(options_, "single"),
            .shared = shared_strategies(worker_),
            .parity = {},
            .replay = replayed(worker_, model, batch, worker_.environment.local_size),
            .replay_alone = replayed(worker_, model, batch, 1)};
  }

  const std::map<std::string, Parity>& parity_of(const std::string& model) {
    const auto found = parity_.find(model);
    if (found != parity_.end()) return found->second;
    return parity_[model] = check_all(worker_, model);
  }

  template <class F>
  void measure_piece(const std::string& name, F measure) {
    if (worker_.agree(record_.has(options_.repeat, name) ? 1 : 0) != 0) return;
    tell_time_left();
    const Moment begin = host_now();
    measure();
    const Time took = Time::nanoseconds(host_now() - begin);
    record_.done.push_back({.repeat = options_.repeat, .piece = name, .took = took});
    if (options_.dry_run) return worker_.forget();
    worker_.save(name);
    worker_.barrier();  // now every rank's part is there
    keep_record();
  }

  void keep_record() {
    record_.spent = spent();
    if (keeps_record_) write_visit(record_, visit_file(options_.out));
  }

  std::vector<PieceEstimate> as_they_took() const {
    std::vector<PieceEstimate> pieces;
    for (const PieceDone& one : record_.done) {
      if (one.repeat != options_.repeat) continue;
      pieces.push_back({.name = one.piece, .least = one.took, .full = one.took});
    }
    return pieces;
  }

  /// Checks every strategy, sees how long each piece takes, and fits it all to the budget.
  void plan() {
    refuse_unless(spent(), "starting and the machine's tables alone took");
    record_.pieces = as_they_took();
    for (const std::string& model : options_.models) parity_of(model);
    const int smallest = *std::ranges::min_element(options_.batches);
    for (const std::string& model : options_.models) {
      worker_.progress.say("", fmt::format("{}: a few quick timings", model));
      const QuickPass quick = time_quickly(worker_, configuration(model, smallest));
      for (const int batch : options_.batches) {
        record_.pieces.push_back(estimate_piece(piece_name(model, batch), quick,
                                                static_cast<double>(batch) / smallest,
                                                options_.steps));
      }
    }
    if (options_.budget > Time{}) fit();
    worker_.options.repeats = static_cast<int>(worker_.agree(record_.repeats));
    keep_record();
  }

  /// As many repeats as fit with one block of each kind; at least one must.
  void fit() {
    const int asked = record_.repeats;
    const auto needs = [this](int repeats) {
      record_.repeats = repeats;
      return spent() + sum_least(still_to_do(record_, options_.repeat));
    };
    int repeats = asked;
    while (repeats > 1 && needs(repeats) > options_.budget) --repeats;
    refuse_unless(needs(repeats), "it takes about");
  }

  /// All ranks call. What rank 0 `needs` must lie within the budget.
  void refuse_unless(Time needs, const char* why) {
    if (options_.budget == Time{} || options_.budget_is_wish) return;
    const Moment needed = worker_.agree(needs.ns());
    if (needed < options_.budget.ns()) return;
    const double seconds = std::ceil(static_cast<double>(needed) * 1e-9);
    throw InputError(
        {}, "--budget",
        fmt::format("{} cannot hold one repeat: {} {}", span(options_.budget), why,
                    span(Time::nanoseconds(needed))),
        fmt::format("more than {:.0f}s, or fewer models, batches and strategies", seconds));
  }

  /// Of the budget, for the piece that comes next; 0: no budget.
  Moment share() {
    if (options_.budget == Time{}) return 0;
    const auto rest = shares(still_to_do(record_, options_.repeat), options_.budget - spent());
    return worker_.agree(rest.empty() ? 1 : rest.front().ns());
  }

  /// Before the pieces are known, only a budget says it.
  void tell_time_left() {
    const bool budget = options_.budget > Time{};
    const bool known = !record_.pieces.empty();
    if (!known && !budget) return;
    VisitRecord seen = record_;
    if (!budget) seen.pieces = as_measured(record_);
    const auto rest = still_to_do(seen, options_.repeat);
    Time left = sum_full(rest);
    const Time allowed = options_.budget - spent();
    if (budget) left = known ? std::max(sum_least(rest), std::min(left, allowed)) : allowed;
    worker_.progress.expect(left);
  }

  void finish() {
    worker_.barrier();
    if (!options_.dry_run || !worker_.first()) return;
    MeasureOptions asked = options_;
    asked.workers = worker_.size();
    print_plan(record_, asked);
  }

  Worker& worker_;
  const MeasureOptions options_;
  bool keeps_record_;
  VisitRecord record_;
  Time spent_before_;
  std::map<std::string, std::map<std::string, Parity>> parity_;  ///< by model and strategy
};

}  // namespace

Profile profile_to_replay(const Calibration& calibration, const std::string& model,
                          Precision precision, int batch, int beside, int slow_motion) {
  return choose_profile(calibration, {.model = model,
                                      .precision = to_string(precision),
                                      .batch = batch,
                                      .beside = beside,
                                      .slow_motion = slow_motion})
      .profile;
}

void measure_all(Worker& worker) {
  Visit(worker).run();
}

}  // namespace lockstep::runner
