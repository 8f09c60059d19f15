// Collectives between ranks that are threads of this process, over loopback.
#include "runner/communicators/gloo.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "runner/measure/agreement.h"
#include "runner/measure/clocks.h"
#include "runner/measure/collectives.h"
#include "tests/catch.h"
#include "tests/runner/ranks.h"

namespace lockstep::runner {

using testing::on_ranks;

TEST_CASE("Gather brings every rank's array to the root, by rank; scatter takes them back") {
  constexpr int kRanks = 3, kCount = 5;
  std::vector<bool> right(kRanks, false);
  on_ranks(kRanks, [&](Communicator& communicator, Device&) {
    const int rank = communicator.rank();
    const bool root = rank == 1;
    const at::Tensor mine = at::full({kCount}, 10.0 * rank);
    const at::Tensor all = root ? at::zeros({kRanks * kCount}) : at::Tensor();
    communicator.gather(mine, all, 1);
    communicator.join();
    bool good = true;
    std::vector<at::Tensor> parts;
    for (int peer = 0; root && peer < kRanks; ++peer) {
      const at::Tensor part = all.narrow(0, peer * kCount, kCount);
      good = good && part.equal(at::full({kCount}, 10.0 * peer));
      parts.push_back(part.add(1));
    }
    communicator.scatter(parts, mine, 1);
    const std::vector<Transfer> transfers = communicator.take_transfers();
    good = good && mine.equal(at::full({kCount}, 10.0 * rank + 1));
    good = good && transfers.size() == 2 && transfers[0].kind == CollectiveKind::gather &&
           transfers[1].kind == CollectiveKind::scatter && transfers[1].bytes == Bytes{20};
    right[static_cast<std::size_t>(rank)] = good;
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    INFO("rank " << rank);
    CHECK(right[static_cast<std::size_t>(rank)]);
  }
}

TEST_CASE("What hosts take to agree is measured for few gradients and for many") {
  std::vector<CopyTable> tables(2);
  on_ranks(2, [&](Communicator& communicator, Device&) {
    tables[static_cast<std::size_t>(communicator.rank())] = measure_agreement(communicator);
  });
  for (const CopyTable& table : tables) {
    CHECK(table.what == "agreement");
    REQUIRE(table.points.size() == 4);
    CHECK(table.points.front().bytes == Bytes{64});
    CHECK(table.points.back().bytes == Bytes{4096});
    for (const CopyPoint& point : table.points) {
      CHECK(point.host > Time{});
      CHECK(point.device == Time{});
    }
  }
}

TEST_CASE("Every collective has a table that ascends with the bytes asked for") {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast,
                                    CollectiveKind::gather, CollectiveKind::scatter}) {
    std::vector<CollectiveTable> tables(2);
    on_ranks(2, [&](Communicator& communicator, Device& device) {
      const CollectiveSizes sizes{.bytes = {{256}, {4096}, {65536}}, .rounds = 3};
      tables[static_cast<std::size_t>(communicator.rank())] =
          measure_collective(kind, communicator, device, sizes, {0, 0});
    });
    const CollectiveTable& table = tables[0];
    CHECK(table.collective == to_string(kind));
    CHECK(table.workers == 2);
    REQUIRE(table.points.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(table.points[i].bytes == Bytes{std::int64_t{256} << (4 * i)});
      CHECK(table.points[i].p50 > Time{});
      CHECK(table.points[i].p10 <= table.points[i].p90);
    }
  }
}

TEST_CASE("Sizes that would take too long are left out, on all ranks alike") {
  std::vector<std::size_t> points(2);
  on_ranks(2, [&](Communicator& communicator, Device& device) {
    const CollectiveSizes sizes{
        .bytes = {{256}, {std::int64_t{1} << 40}}, .rounds = 2, .longest = 1};
    const auto table =
        measure_collective(CollectiveKind::all_reduce, communicator, device, sizes, {0, 0});
    points[static_cast<std::size_t>(communicator.rank())] = table.points.size();
  });
  CHECK(points == std::vector<std::size_t>{1, 1});
}

TEST_CASE("Ranks that share a clock find that out") {
  std::vector<Moment> offsets;
  on_ranks(3, [&](Communicator& communicator, Device& device) {
    const auto found = clock_offsets(communicator, device);
    if (communicator.rank() == 0) offsets = found;
  });
  REQUIRE(offsets.size() == 3);
  CHECK(offsets[0] == 0);
  // Their true offset is zero; half of the way to and fro of the quickest of twelve is the error.
  for (const Moment offset : offsets) CHECK(std::abs(offset) < 1'000'000'000);
}

}  // namespace lockstep::runner
