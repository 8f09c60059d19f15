#include "sim/platform/sharing.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace lockstep {
namespace {

constexpr double kUnit = 0x1p-20;  // bytes per second

struct Flows {
  std::vector<Bandwidth> links;
  std::vector<std::vector<std::uint32_t>> routes;
  std::vector<Bandwidth> bounds;
};

std::vector<Rate> share(const Flows& flows) {
  Sharing sharing(flows.links);
  for (std::uint32_t f = 0; f < flows.routes.size(); ++f) {
    sharing.add(f, flows.routes[f], flows.bounds[f]);
  }
  return sharing.rates();
}

Flows random_flows(unsigned seed) {
  std::mt19937 random(seed);
  Flows flows;
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  for (auto l = 2 + below(6); l > 0; --l) flows.links.push_back({100 + below(900)});
  for (auto f = 1 + below(10); f > 0; --f) {
    std::vector<std::uint32_t> route;
    for (std::uint32_t l = 0; l < flows.links.size(); ++l) {
      if (below(3) == 0) route.push_back(l);
    }
    if (route.empty()) route.push_back(0);
    flows.routes.push_back(route);
    flows.bounds.push_back({below(3) == 0 ? 50 + below(300) : 0});
  }
  return flows;
}

bool uses(const Flows& flows, std::size_t flow, std::uint32_t link) {
  const auto& route = flows.routes[flow];
  return std::find(route.begin(), route.end(), link) != route.end();
}

TEST_CASE("three flows into one link get a third each") {
  // Links: 0, 1, 2 of the senders at 100 B/s, 3 of the receiver at 90 B/s.
  const Flows flows{{{100}, {100}, {100}, {90}}, {{0, 3}, {1, 3}, {2, 3}}, {{0}, {0}, {0}}};
  CHECK(share(flows) == std::vector<Rate>(3, Rate{30} << kRateBits));
}

TEST_CASE("what one link leaves unused another flow takes") {
  // Flow 0 over both, flow 1 over the narrow one, flow 2 over the wide one: the narrow link gives 5
  // each to flows 0 and 1; the wide one has 100 - 5 left for flow 2.
  const Flows flows{{{10}, {100}}, {{0, 1}, {0}, {1}}, {{0}, {0}, {0}}};
  CHECK(share(flows) ==
        std::vector<Rate>{Rate{5} << kRateBits, Rate{5} << kRateBits, Rate{95} << kRateBits});
}

TEST_CASE("a bound of its own leaves the rest to others") {
  const Flows flows{{{90}}, {{0}, {0}}, {{20}, {0}}};
  CHECK(share(flows) == std::vector<Rate>{Rate{20} << kRateBits, Rate{70} << kRateBits});
}

TEST_CASE("a flow that goes gives its share back") {
  const std::vector<Bandwidth> links{{100}};
  const std::vector<std::uint32_t> route{0};
  Sharing sharing(links);
  sharing.add(0, route, {});
  sharing.add(1, route, {});
  CHECK(sharing.rates() == std::vector<Rate>{Rate{50} << kRateBits, Rate{50} << kRateBits});
  sharing.remove(0);
  CHECK(sharing.rates() == std::vector<Rate>{0, Rate{100} << kRateBits});
}

TEST_CASE("max-min sharing on random graphs equals raising all rates bit by bit") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Flows flows = random_flows(seed);
    const std::vector<Rate> rates = share(flows);
    // Brute force: raise every flow by a small step unless a link of its or its bound is reached.
    constexpr double kStep = 0.01;
    std::vector<double> raised(flows.routes.size(), 0), used(flows.links.size(), 0);
    for (bool rising = true; rising;) {
      rising = false;
      for (std::size_t f = 0; f < raised.size(); ++f) {
        const auto bound = static_cast<double>(flows.bounds[f].bytes_per_second);
        bool room = bound == 0 || raised[f] + kStep <= bound;
        for (const std::uint32_t l : flows.routes[f]) {
          room = room && used[l] + kStep <= static_cast<double>(flows.links[l].bytes_per_second);
        }
        if (!room) continue;
        raised[f] += kStep;
        for (const std::uint32_t l : flows.routes[f]) used[l] += kStep;
        rising = true;
      }
    }
    // A link's last step can go to any of its flows, and that error passes on from link to link.
    for (std::size_t f = 0; f < raised.size(); ++f) {
      CHECK(static_cast<double>(rates[f]) * kUnit == Approx(raised[f]).margin(0.2));
    }
  }
}

TEST_CASE("max-min sharing: every flow is at its bound or largest on a full link") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Flows flows = random_flows(seed);
    const std::vector<Rate> rates = share(flows);
    // Shares are rounded down, so a link may keep one unit for each of its flows.
    const auto slack = static_cast<Rate>(flows.routes.size());
    std::vector<Rate> used(flows.links.size(), 0), largest(flows.links.size(), 0);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      for (const std::uint32_t l : flows.routes[f]) {
        used[l] += rates[f];
        largest[l] = std::max(largest[l], rates[f]);
      }
    }
    for (std::uint32_t l = 0; l < used.size(); ++l) REQUIRE(used[l] <= to_rate(flows.links[l]));
    for (std::size_t f = 0; f < rates.size(); ++f) {
      bool held = flows.bounds[f].bytes_per_second > 0 && rates[f] == to_rate(flows.bounds[f]);
      for (std::uint32_t l = 0; l < used.size(); ++l) {
        const bool full = used[l] + slack >= to_rate(flows.links[l]);
        held = held || (uses(flows, f, l) && full && rates[f] + slack >= largest[l]);
      }
      REQUIRE(held);
    }
  }
}

}  // namespace
}  // namespace lockstep
