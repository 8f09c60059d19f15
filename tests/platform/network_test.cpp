#include "sim/platform/network.h"

#include "sim/core/error.h"
#include "tests/catch.h"

namespace lockstep {
namespace {

Platform two_hosts() {
  return plain_network({.workers = 4,
                        .devices_per_host = 2,
                        .device_bandwidth = {10'000},
                        .device_latency = Time::nanoseconds(1),
                        .host_bandwidth = {1'000},
                        .host_latency = Time::nanoseconds(50)});
}

TEST_CASE("a plain network: two hosts of two devices behind one switch") {
  const Platform platform = two_hosts();
  // switch; host 0, device 0, device 1; host 1, device 2, device 3.
  REQUIRE(platform.nodes.size() == 7);
  CHECK(platform.nodes[1].name == "host 0");
  CHECK(platform.device_of_worker == std::vector<std::uint32_t>{2, 3, 5, 6});
  // Links: 0 host 0 - switch, 1 device 0, 2 device 1, 3 host 1 - switch, 4 device 2, 5 device 3.
  REQUIRE(platform.links.size() == 6);
  const Network network(platform);
  CHECK(network.workers() == 4);
  CHECK(network.links().size() == 12);
  SECTION("within a host") {
    const Route route = network.route(0, 1);
    CHECK(route.links == std::vector<std::uint32_t>{2, 5});  // device 0 up, device 1 down
    CHECK(route.latency == Time::nanoseconds(2));
  }
  SECTION("between hosts") {
    const Route route = network.route(1, 2);
    CHECK(route.links == std::vector<std::uint32_t>{4, 0, 7, 9});
    CHECK(route.latency == Time::nanoseconds(1 + 50 + 50 + 1));
  }
  SECTION("the way back takes the other direction of every link") {
    CHECK(network.route(2, 1).links == std::vector<std::uint32_t>{8, 6, 1, 5});
  }
}

TEST_CASE("the way of least latency wins, then of fewest links") {
  Platform platform = two_hosts();
  SECTION("a fast cable between the hosts") {
    platform.links.push_back({1, 4, {500}, Time::nanoseconds(99)});
    CHECK(Network(platform).route(0, 2).links == std::vector<std::uint32_t>{2, 12, 9});
  }
  SECTION("as fast as through the switch") {
    platform.links.push_back({1, 4, {500}, Time::nanoseconds(100)});
    CHECK(Network(platform).route(0, 2).links == std::vector<std::uint32_t>{2, 12, 9});
  }
  SECTION("slower") {
    platform.links.push_back({1, 4, {500}, Time::nanoseconds(101)});
    CHECK(Network(platform).route(0, 2).links == std::vector<std::uint32_t>{2, 0, 7, 9});
  }
}

TEST_CASE("a platform whose parts do not fit is refused") {
  Platform platform = two_hosts();
  SECTION("a link to nowhere") {
    platform.links[0].to = 99;
    CHECK_THROWS_WITH(Network(platform), Contains("joins a node that is not there"));
  }
  SECTION("no bandwidth") {
    platform.links[0].bandwidth = {};
    CHECK_THROWS_WITH(Network(platform), Contains("host 0") && Contains("bandwidth"));
  }
  SECTION("latencies whose sum would leave the clock") {
    for (Link& link : platform.links) link.latency = Time::milliseconds(2'000 * 3'600'000LL);
    CHECK_THROWS_WITH(Network(platform), Contains("latency"));
  }
  SECTION("a worker on a host") {
    platform.device_of_worker[1] = 1;
    CHECK_THROWS_WITH(Network(platform), Contains("worker 1 sits on no device"));
  }
  SECTION("two workers on one device") {
    platform.device_of_worker[1] = 2;
    CHECK_THROWS_WITH(Network(platform), Contains("two workers sit on device 0"));
  }
  SECTION("hosts apart") {
    platform.links.erase(platform.links.begin() + 3);
    CHECK_THROWS_WITH(Network(platform), Contains("no way leads from device 0 to device 2"));
  }
  SECTION("nobody") {
    CHECK_THROWS_AS(plain_network({.workers = 0}), InputError);
  }
}

}  // namespace
}  // namespace lockstep
