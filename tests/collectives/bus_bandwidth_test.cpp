#include "sim/collectives/bus_bandwidth.h"

#include "tests/catch.h"

namespace lockstep {
namespace {

Machine four(const std::string& card, const std::string& links) {
  Machine machine;
  machine.gpus.resize(4);
  for (GpuInfo& gpu : machine.gpus) gpu.name = card;
  machine.links = links;
  return machine;
}

TEST_CASE("bus bandwidth is that of nccl-tests") {
  CHECK(bus_factor("all_reduce", 4) == Approx(1.5));
  CHECK(bus_factor("all_reduce", 2) == Approx(1));
  for (const char* part : {"all_gather", "reduce_scatter", "all_to_all"}) {
    CHECK(bus_factor(part, 4) == Approx(0.75));
  }
  for (const char* whole : {"broadcast", "reduce", "send_recv"}) {
    CHECK(bus_factor(whole, 4) == Approx(1));
  }
  // 1 MiB of each of four workers is 4 MiB there, times 3/4.
  CHECK(bus_factor("gather", 4) == Approx(3));
  CHECK(bus_factor("scatter", 4) == Approx(3));
}

TEST_CASE("of a measured point") {
  // 128 MiB on four H100s in 614.94 us: 218.3 GB/s, times 1.5.
  CollectiveTable table;
  table.collective = "all_reduce";
  table.workers = 4;
  CollectivePoint point;
  point.bytes = Bytes{128 << 20};
  point.p50 = Time::nanoseconds(614'940);
  CHECK(static_cast<double>(bus_bandwidth(table, point).bytes_per_second) ==
        Approx(327.39e9).epsilon(1e-4));
  CHECK(bus_bandwidth(table, {}) == Bandwidth{});
  table.workers = 1;
  CHECK(bus_bandwidth(table, point) == Bandwidth{});
}

TEST_CASE("the link of a pair, where it is known") {
  const auto h100 = link_bandwidth(four("NVIDIA H100 80GB HBM3", "NVLink, 18 links a pair"));
  REQUIRE(h100);
  CHECK(*h100 == Bandwidth{450'000'000'000});
  CHECK(link_bandwidth(four("NVIDIA B200", "NVLink, 18 links a pair")) ==
        Bandwidth{900'000'000'000});
  CHECK_FALSE(link_bandwidth(four("NVIDIA H100 PCIe", "PHB, SYS")));
  CHECK_FALSE(link_bandwidth(four("NVIDIA H100", "NVLink, some links a pair")));
  CHECK_FALSE(link_bandwidth(four("a card of tomorrow", "NVLink, 18 links a pair")));
  CHECK_FALSE(link_bandwidth(four("", "")));
  CHECK_FALSE(link_bandwidth({}));
  CHECK_THAT(describe_bus({327'390'000'000}, h100), EndsWith(", 73 % of the link's"));
  CHECK_THAT(describe_bus({327'390'000'000}, std::nullopt), !Contains("%"));
}

}  // namespace
}  // namespace lockstep
