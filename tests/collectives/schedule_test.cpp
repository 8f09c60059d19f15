// Every schedule moves real arrays, and what comes out is compared with the collective's
// definition; then its bytes and steps with the formulas.
#include "sim/collectives/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/steps.h"
#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

using Kind = CollectiveKind;
using Array = std::vector<std::int64_t>;

constexpr std::uint32_t kMostRanks = 17;
constexpr std::int64_t kElement = 4;
/// What a rank has where it should have nothing.
constexpr std::int64_t kGarbage = -1'000'000'000'000'000;

std::int64_t brought(std::size_t rank, std::size_t element) {
  return static_cast<std::int64_t>((rank + 1) * 1'000'003 + element * 7919);
}

/// First element of each of n parts of an array, the first ones being larger; and its end.
std::vector<std::size_t> part_bounds(std::size_t elements, std::size_t n) {
  std::vector<std::size_t> bounds{0};
  for (std::size_t part = 0; part < n; ++part) {
    bounds.push_back(bounds.back() + elements / n + (part < elements % n ? 1 : 0));
  }
  return bounds;
}

/// Arrays of all ranks before and after, by definition. What `after` leaves out is not said.
struct Definition {
  std::vector<Array> before;
  std::vector<std::map<std::size_t, std::int64_t>> after;
};

Definition definition(const Collective& collective, std::size_t n) {
  const auto elements = static_cast<std::size_t>(collective.bytes.count / kElement);
  const std::vector<std::size_t> parts = part_bounds(elements, n);
  const bool arrays = collective.kind == Kind::gather || collective.kind == Kind::scatter ||
                      collective.kind == Kind::all_to_all;
  const std::size_t space = arrays ? n * elements : elements;
  Definition data{std::vector<Array>(n, Array(space, kGarbage)), {}};
  data.after.resize(n);
  const auto everybody = [&](auto action) {
    for (std::size_t rank = 0; rank < n; ++rank) action(rank);
  };
  const auto fill = [&](std::size_t rank, std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e) data.before[rank][e] = brought(rank, e);
  };
  const auto wants = [&](std::size_t rank, std::size_t begin, std::size_t end, auto value) {
    for (std::size_t e = begin; e < end; ++e) data.after[rank][e] = value(e);
  };
  const auto of = [](std::size_t rank) {
    return [rank](std::size_t element) { return brought(rank, element); };
  };
  const auto sum = [n](std::size_t element) {
    std::int64_t total = 0;
    for (std::size_t rank = 0; rank < n; ++rank) total += brought(rank, element);
    return total;
  };
  const std::size_t root = collective.root;
  switch (collective.kind) {
    case Kind::broadcast:
      fill(root, 0, elements);
      everybody([&](std::size_t rank) { wants(rank, 0, elements, of(root)); });
      break;
    case Kind::scatter:
      fill(root, 0, space);
      everybody(
          [&](std::size_t rank) { wants(rank, rank * elements, (rank + 1) * elements, of(root)); });
      break;
    case Kind::gather:
      everybody([&](std::size_t rank) {
        fill(rank, rank * elements, (rank + 1) * elements);
        wants(root, rank * elements, (rank + 1) * elements, of(rank));
      });
      break;
    case Kind::all_gather:
      everybody([&](std::size_t rank) {
        fill(rank, parts[rank], parts[rank + 1]);
        everybody([&](std::size_t to) { wants(to, parts[rank], parts[rank + 1], of(rank)); });
      });
      break;
    case Kind::reduce:
      everybody([&](std::size_t rank) { fill(rank, 0, elements); });
      wants(root, 0, elements, sum);
      break;
    case Kind::reduce_scatter:
      everybody([&](std::size_t rank) {
        fill(rank, 0, elements);
        wants(rank, parts[rank], parts[rank + 1], sum);
      });
      break;
    case Kind::all_reduce:
      everybody([&](std::size_t rank) {
        fill(rank, 0, elements);
        wants(rank, 0, elements, sum);
      });
      break;
    case Kind::all_to_all:
      // What rank r has for d lies at r x elements + parts[d].
      everybody([&](std::size_t rank) {
        fill(rank, rank * elements, (rank + 1) * elements);
        everybody([&](std::size_t to) {
          const std::size_t at = rank * elements;
          wants(to, at + parts[to], at + parts[to + 1], of(rank));
        });
      });
      break;
  }
  return data;
}

/// Messages of a step take what their senders had before it.
std::vector<Array> execute(const Schedule& schedule, std::vector<Array> arrays) {
  std::vector<std::size_t> begin{0};
  for (const Bytes chunk : schedule.chunks) {
    begin.push_back(begin.back() + static_cast<std::size_t>(chunk.count / kElement));
  }
  std::vector<Array> before;
  std::uint32_t step = schedule.steps;
  for (const ScheduledMessage& message : schedule.messages) {
    if (message.step != step) before = arrays;
    step = message.step;
    for (std::uint32_t i = 0; i < message.chunks; ++i) {
      const std::size_t chunk = (message.first + i) % schedule.chunks.size();
      for (std::size_t e = begin[chunk]; e < begin[chunk + 1]; ++e) {
        const std::int64_t value = before[message.from][e];
        std::int64_t& target = arrays[message.to][e];
        target = message.adds ? target + value : value;
      }
    }
  }
  return arrays;
}

/// All there is to vary of one algorithm.
template <class F>
void for_every_collective(std::int64_t elements, F action) {
  for (const AlgorithmEntry& entry : algorithms()) {
    const bool segments =
        entry.algorithm == Algorithm::chain || entry.algorithm == Algorithm::double_tree;
    const bool hosts = entry.algorithm == Algorithm::hierarchical;
    for (std::uint32_t n = 1; n <= kMostRanks; ++n) {
      Collective collective{.kind = entry.kind, .bytes = Bytes{kElement * elements}};
      collective.algorithm = entry.algorithm;
      collective.step.element = Bytes{kElement};
      std::set<std::uint32_t> roots{0};
      if (has_root(entry.kind)) roots.insert({n / 2, n - 1});
      for (const std::uint32_t root : roots) {
        for (const std::int64_t segment : segments ? std::vector{0, 8, 52} : std::vector{0}) {
          for (std::uint32_t per_host = 1; per_host <= (hosts ? n : 1); ++per_host) {
            collective.root = root;
            collective.step.segment = Bytes{segment};
            collective.per_host = per_host;
            action(collective, n);
          }
        }
      }
    }
  }
}

std::string described(const Collective& collective, std::uint32_t n) {
  return fmt::format("{} {} n={} root={} bytes={} segment={} per_host={}",
                     to_string(collective.kind), to_string(collective.algorithm), n,
                     collective.root, collective.bytes.count, collective.step.segment.count,
                     collective.per_host);
}

TEST_CASE("every schedule on real arrays gives what its collective is defined to give") {
  std::size_t checked = 0;
  for (const std::int64_t elements : {1, 16, 37, 101}) {
    for_every_collective(elements, [&](const Collective& collective, std::uint32_t n) {
      const Schedule schedule = schedule_of(collective, n);
      const Definition data = definition(collective, n);
      const std::vector<Array> result = execute(schedule, data.before);
      bool right = true;
      for (std::uint32_t rank = 0; rank < n; ++rank) {
        for (const auto& [element, value] : data.after[rank]) {
          right = right && result[rank][element] == value;
          ++checked;
        }
      }
      INFO(described(collective, n));
      REQUIRE(right);
    });
  }
  CHECK(checked > 1'000'000);
}

TEST_CASE("a message that is lost, misread or wrongly added shows in the result") {
  const Collective collective{.bytes = Bytes{kElement * 37}};
  const Definition data = definition(collective, 5);
  const auto right = [&](const Schedule& schedule) {
    const std::vector<Array> result = execute(schedule, data.before);
    bool all = true;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      for (const auto& [element, value] : data.after[rank]) {
        all = all && result[rank][element] == value;
      }
    }
    return all;
  };
  const Schedule good = schedule_of(collective, 5);
  REQUIRE(right(good));
  for (std::size_t i = 0; i < good.messages.size(); ++i) {
    Schedule bad = good;
    bad.messages.erase(bad.messages.begin() + static_cast<std::ptrdiff_t>(i));
    CHECK_FALSE(right(bad));
    bad = good;
    bad.messages[i].first = (bad.messages[i].first + 1) % 5;
    CHECK_FALSE(right(bad));
    bad = good;
    bad.messages[i].adds = !bad.messages[i].adds;
    CHECK_FALSE(right(bad));
  }
}

TEST_CASE("chunks make up the array, and messages hold what their chunks do") {
  for_every_collective(101, [](const Collective& collective, std::uint32_t n) {
    const Schedule schedule = schedule_of(collective, n);
    if (n == 1) return;
    const bool arrays = collective.kind == Kind::gather || collective.kind == Kind::scatter ||
                        collective.kind == Kind::all_to_all;
    std::int64_t whole = 0;
    for (const Bytes chunk : schedule.chunks) whole += chunk.count;
    INFO(described(collective, n));
    REQUIRE(whole == collective.bytes.count * (arrays ? n : 1));
    bool equal = true;
    for (const ScheduledMessage& message : schedule.messages) {
      std::int64_t bytes = 0;
      for (std::uint32_t i = 0; i < message.chunks; ++i) {
        bytes += schedule.chunks[(message.first + i) % schedule.chunks.size()].count;
      }
      equal = equal && bytes == message.bytes.count && message.chunks > 0 &&
              message.from != message.to && message.to < n && message.step < schedule.steps;
    }
    REQUIRE(equal);
  });
}

TEST_CASE("what a rank is said to send is what its peer is said to receive, step by step") {
  for_every_collective(37, [](const Collective& collective, std::uint32_t n) {
    const StepPlan plan(collective, n);
    using End = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, Bytes>;
    std::vector<Message> messages;
    bool alike = true;
    for (std::uint32_t step = 0; step < plan.steps(); ++step) {
      std::set<End> sent, received;
      for (std::uint32_t rank = 0; rank < n; ++rank) {
        messages.clear();
        plan.sends(rank, step, messages);
        for (const Message& m : messages) sent.insert({rank, m.peer, m.first, m.chunks, m.bytes});
        messages.clear();
        plan.receives(rank, step, messages);
        for (const Message& m : messages) {
          received.insert({m.peer, rank, m.first, m.chunks, m.bytes});
        }
      }
      alike = alike && sent == received;
    }
    INFO(described(collective, n));
    REQUIRE(alike);
  });
}

TEST_CASE("only linear algorithms give a rank more than one message to send or receive at once") {
  for_every_collective(101, [](const Collective& collective, std::uint32_t n) {
    if (collective.algorithm == Algorithm::linear) return;
    std::set<std::pair<std::uint32_t, std::uint32_t>> senders, receivers;
    bool single = true;
    for (const ScheduledMessage& message : schedule_of(collective, n).messages) {
      single = single && senders.insert({message.step, message.from}).second &&
               receivers.insert({message.step, message.to}).second;
    }
    INFO(described(collective, n));
    REQUIRE(single);
  });
}

std::uint32_t ceil_log2(std::uint32_t n) {
  return static_cast<std::uint32_t>(std::bit_width(n - 1));
}

/// Steps of a folded algorithm that takes log2(n) on a power of two.
std::uint32_t folded(std::uint32_t n, std::uint32_t times) {
  const std::uint32_t floor = static_cast<std::uint32_t>(std::bit_width(n)) - 1;
  return times * floor + (std::has_single_bit(n) ? 0 : 2);
}

std::uint32_t formula_steps(const Collective& collective, std::uint32_t n) {
  const std::int64_t segment = collective.step.segment.count;
  const auto k = static_cast<std::uint32_t>(
      segment == 0 ? 1 : (collective.bytes.count + segment - 1) / segment);
  const std::uint32_t g = collective.per_host, h = (n + g - 1) / g;
  const bool all_reduce = collective.kind == Kind::all_reduce;
  switch (collective.algorithm) {
    case Algorithm::linear:
      return n == 1 ? 0 : all_reduce ? 2 : 1;
    case Algorithm::tree:
      return ceil_log2(n) * (all_reduce ? 2 : 1);
    case Algorithm::chain:
      return n == 1 ? 0 : n - 2 + k;
    case Algorithm::ring:
      return (n - 1) * (all_reduce ? 2 : 1);
    case Algorithm::pairwise:
      return n - 1;
    case Algorithm::gloo_ring:
      return 4 * (n - 1);  // small arrays: two segments a part
    case Algorithm::recursive_doubling:
    case Algorithm::recursive_halving:
      return folded(n, 1);
    case Algorithm::halving_doubling:
      return folded(n, 2);
    case Algorithm::hierarchical:
      return 2 * (n % g == 0 ? g - 1 : ceil_log2(g)) + 2 * (h - 1);
    case Algorithm::double_tree:
      break;
  }
  // At most: two steps a level, the first of either colour, two for each further pair of segments.
  if (n == 1) return 0;
  const auto height = static_cast<std::uint32_t>(std::bit_width(n - 1));
  return (2 * height + 2 * ((std::max(k, 2U) + 1) / 2) - 2) * (all_reduce ? 2 : 1);
}

TEST_CASE("the number of steps is the formula's") {
  for_every_collective(101, [](const Collective& collective, std::uint32_t n) {
    INFO(described(collective, n));
    const std::uint32_t steps = schedule_of(collective, n).steps;
    if (collective.algorithm == Algorithm::double_tree) {
      REQUIRE(steps <= formula_steps(collective, n));
    } else {
      REQUIRE(steps == formula_steps(collective, n));
    }
  });
}

/// Divided by all numbers up to 17, and so that parts of parts are even.
constexpr std::int64_t kDivisible = 12'252'240;

TEST_CASE("bytes of a rank are the formula's: ring, pairwise, halving, doubling, hierarchical") {
  for_every_collective(kDivisible, [](const Collective& collective, std::uint32_t n) {
    const std::int64_t whole = collective.bytes.count, share = whole / n * (n - 1);
    const std::uint32_t g = collective.per_host, h = n / g;
    const bool all_reduce = collective.kind == Kind::all_reduce;
    std::int64_t expected = 0;
    switch (collective.algorithm) {
      case Algorithm::ring:
      case Algorithm::pairwise:
        expected = all_reduce ? 2 * share : share;
        break;
      case Algorithm::recursive_doubling:
        if (!std::has_single_bit(n)) return;
        expected = all_reduce ? ceil_log2(n) * whole : share;
        break;
      case Algorithm::recursive_halving:
      case Algorithm::halving_doubling:
        if (!std::has_single_bit(n)) return;
        expected = all_reduce ? 2 * share : share;
        break;
      case Algorithm::hierarchical:
        if (n % g != 0) return;
        expected = 2 * (whole / g * (g - 1)) + 2 * (whole / g / h * (h - 1));
        break;
      case Algorithm::linear:
        if (has_root(collective.kind) || all_reduce) return;
        expected = share;
        break;
      default:
        return;
    }
    INFO(described(collective, n));
    for (const Traffic& rank : traffic(schedule_of(collective, n))) {
      REQUIRE(rank == Traffic{{expected}, {expected}});
    }
  });
}

/// Ranks below a place of a binomial tree, itself included.
std::int64_t subtree(std::uint32_t place, std::uint32_t n) {
  return place == 0 ? n : std::min(place & (~place + 1), n - place);
}

/// Of a collective away from its root; towards it the two are exchanged.
Traffic away_from_root(const Collective& collective, std::uint32_t n, std::uint32_t place) {
  const std::int64_t whole = collective.bytes.count;
  const bool apart = collective.kind == Kind::scatter || collective.kind == Kind::gather;
  const std::int64_t got = place == 0 ? 0 : whole;
  if (collective.algorithm == Algorithm::linear) {
    return {{place == 0 ? (n - 1) * whole : 0}, {got}};
  }
  if (collective.algorithm == Algorithm::chain) return {{place + 1 < n ? whole : 0}, {got}};
  const std::int64_t below = subtree(place, n);
  if (apart) return {{(below - 1) * whole}, {place == 0 ? 0 : below * whole}};
  // A subtree of m ranks has ceil(log2 m) children at its top.
  return {{ceil_log2(static_cast<std::uint32_t>(below)) * whole}, {got}};
}

TEST_CASE("bytes of a rank are the formula's: to and from a root") {
  for_every_collective(kDivisible, [](const Collective& collective, std::uint32_t n) {
    const bool simple = collective.algorithm == Algorithm::linear ||
                        collective.algorithm == Algorithm::tree ||
                        collective.algorithm == Algorithm::chain;
    if (!has_root(collective.kind) || !simple || collective.step.segment > Bytes{}) return;
    const bool towards = collective.kind == Kind::gather || collective.kind == Kind::reduce;
    INFO(described(collective, n));
    const std::vector<Traffic> ranks = traffic(schedule_of(collective, n));
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      Traffic expected = away_from_root(collective, n, (rank + n - collective.root) % n);
      if (towards) std::swap(expected.sent, expected.received);
      REQUIRE(ranks[rank] == expected);
    }
  });
}

TEST_CASE("in a double tree no rank sends or receives more than the array each way") {
  for_every_collective(kDivisible, [](const Collective& collective, std::uint32_t n) {
    if (collective.algorithm != Algorithm::double_tree || collective.step.segment > Bytes{}) return;
    const std::int64_t whole = collective.bytes.count;
    const std::int64_t ways = collective.kind == Kind::all_reduce ? 2 : 1;
    std::int64_t sum = 0;
    INFO(described(collective, n));
    for (const Traffic& rank : traffic(schedule_of(collective, n))) {
      REQUIRE(rank.sent.count <= ways * whole);
      REQUIRE(rank.received.count <= ways * whole);
      sum += rank.sent.count;
    }
    REQUIRE(sum == ways * (n - 1) * whole);
  });
}

TEST_CASE("bytes of an all-reduce in sum: trees, Gloo's ring, folds") {
  const auto sum = [](Algorithm algorithm, std::uint32_t n) {
    Collective collective{.bytes = Bytes{kElement * kDivisible}};
    collective.algorithm = algorithm;
    std::int64_t bytes = 0;
    for (const Traffic& rank : traffic(schedule_of(collective, n))) bytes += rank.sent.count;
    return bytes;
  };
  const std::int64_t whole = kElement * kDivisible;
  for (std::uint32_t n = 2; n <= kMostRanks; ++n) {
    CHECK(sum(Algorithm::tree, n) == 2 * (n - 1) * whole);
    CHECK(sum(Algorithm::linear, n) == 2 * (n - 1) * whole);
    CHECK(sum(Algorithm::gloo_ring, n) == 2 * (n - 1) * whole);
    // Each rank beyond a power of two, m, hands over its array and gets one back.
    const std::int64_t m = std::bit_floor(n), folds = 2 * (n - m) * whole;
    CHECK(sum(Algorithm::recursive_doubling, n) ==
          m * ceil_log2(std::bit_floor(n)) * whole + folds);
    CHECK(sum(Algorithm::halving_doubling, n) == 2 * (m - 1) * whole + folds);
  }
}

using Line = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string, bool>;

std::vector<Line> lines(const Schedule& schedule) {
  std::vector<Line> found;
  for (const ScheduledMessage& m : schedule.messages) {
    found.emplace_back(m.step, m.from, m.to, chunk_label(schedule, m), m.adds);
  }
  return found;
}

TEST_CASE("schedules by hand") {
  Collective collective{.bytes = Bytes{12}};
  // Step by step: rank r passes on chunk r - s, added; then r + 1 - s, copied.
  CHECK(lines(schedule_of(collective, 3)) == std::vector<Line>{{0, 0, 1, "0", true},
                                                               {0, 1, 2, "1", true},
                                                               {0, 2, 0, "2", true},
                                                               {1, 0, 1, "2", true},
                                                               {1, 1, 2, "0", true},
                                                               {1, 2, 0, "1", true},
                                                               {2, 0, 1, "1", false},
                                                               {2, 1, 2, "2", false},
                                                               {2, 2, 0, "0", false},
                                                               {3, 0, 1, "0", false},
                                                               {3, 1, 2, "1", false},
                                                               {3, 2, 0, "2", false}});
  // Five ranks from rank 3: places 0 to 4 are ranks 3, 4, 0, 1, 2. Place 0 gives place 4 its own,
  // place 2 those of 2 and 3, place 1 its own; then place 2 gives place 3 its own.
  collective.kind = Kind::scatter;
  collective.algorithm = Algorithm::tree;
  collective.root = 3;
  CHECK(lines(schedule_of(collective, 5)) == std::vector<Line>{{0, 3, 2, "2", false},
                                                               {1, 3, 0, "0-1", false},
                                                               {2, 0, 1, "1", false},
                                                               {2, 3, 4, "4", false}});
  // Three ranks: what 0 has for 1 is chunk 0>1.
  collective.kind = Kind::all_to_all;
  collective.algorithm = Algorithm::pairwise;
  collective.root = 0;
  CHECK(lines(schedule_of(collective, 3)) == std::vector<Line>{{0, 0, 1, "0>1", false},
                                                               {0, 1, 2, "1>2", false},
                                                               {0, 2, 0, "2>0", false},
                                                               {1, 0, 2, "0>2", false},
                                                               {1, 1, 0, "1>0", false},
                                                               {1, 2, 1, "2>1", false}});
}

TEST_CASE("a hierarchical all-reduce by hand") {
  // Two hosts of two: each host scatters sums of halves (chunks 0-1 and 2-3), rank 0 and 2 then
  // hold half 1, and all-reduce it between the hosts in two quarters; the halves come back.
  Collective collective{.bytes = Bytes{16}};
  collective.algorithm = Algorithm::hierarchical;
  collective.per_host = 2;
  CHECK(lines(schedule_of(collective, 4)) == std::vector<Line>{{0, 0, 1, "0-1", true},
                                                               {0, 1, 0, "2-3", true},
                                                               {0, 2, 3, "0-1", true},
                                                               {0, 3, 2, "2-3", true},
                                                               {1, 0, 2, "2", true},
                                                               {1, 1, 3, "0", true},
                                                               {1, 2, 0, "3", true},
                                                               {1, 3, 1, "1", true},
                                                               {2, 0, 2, "3", false},
                                                               {2, 1, 3, "1", false},
                                                               {2, 2, 0, "2", false},
                                                               {2, 3, 1, "0", false},
                                                               {3, 0, 1, "2-3", false},
                                                               {3, 1, 0, "0-1", false},
                                                               {3, 2, 3, "2-3", false},
                                                               {3, 3, 2, "0-1", false}});
}

TEST_CASE("what cannot be listed is refused in a line") {
  const auto refused = [](Collective collective, std::uint32_t n) -> std::string {
    try {
      schedule_of(collective, n);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Collective collective{.bytes = Bytes{1 << 20}};
  CHECK_THAT(refused(collective, 0), Contains("from 1 to 65535"));
  CHECK_THAT(refused(collective, 4096), Contains("more than 50000 messages"));
  CHECK_THAT(refused(collective, 60'000), Contains("more than 50000 messages"));
  CHECK_THAT(refused({.bytes = Bytes{6}}, 2), Contains("no whole elements; a multiple of 4 B"));
  CHECK_THAT(refused({.bytes = Bytes{std::int64_t{1} << 50}}, 2), Contains("at most 1 TiB"));
  collective.root = 4;
  CHECK_THAT(refused(collective, 4), Contains("there is no rank 4; with 4 ranks the last is 3"));
  collective.root = 0;
  for (const AlgorithmEntry& entry : algorithms()) {
    if (entry.algorithm != Algorithm::chain && entry.algorithm != Algorithm::double_tree) continue;
    collective.kind = entry.kind;
    collective.algorithm = entry.algorithm;
    collective.bytes = Bytes{std::int64_t{1} << 40};
    collective.step.segment = Bytes{4};
    CHECK_THAT(refused(collective, 2), Contains("larger segments"));
  }
  // Trees of thousands are no trouble.
  Collective tree{.kind = Kind::broadcast, .bytes = Bytes{1 << 20}};
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::double_tree, Algorithm::linear}) {
    tree.algorithm = algorithm;
    const std::size_t halves = algorithm == Algorithm::double_tree ? 2 : 1;
    CHECK(schedule_of(tree, 20'000).messages.size() == halves * 19'999);
  }
}

TEST_CASE("names are told apart by collective") {
  CHECK(collective_named("all_to_all") == Kind::all_to_all);
  CHECK(algorithm_named(Kind::reduce, "chain").algorithm == Algorithm::chain);
  CHECK_THROWS_WITH(collective_named("allreduce"),
                    Contains("'allreduce' is no collective") && Contains("all_reduce"));
  CHECK_THROWS_WITH(algorithm_named(Kind::gather, "ring"),
                    Contains("'ring' is no algorithm of gather; one of linear, tree"));
}

}  // namespace
}  // namespace lockstep
