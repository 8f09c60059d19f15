#include "runner/communicators/fusion_lane.h"

#include <utility>

#include "runner/measure/clock.h"
#include "sim/core/error.h"

namespace lockstep::runner {

namespace {

class CoreLane final : public FusionLane {
 public:
  CoreLane(Communicator& communicator, std::size_t gradients)
      : communicator_(communicator), made_(gradients) {}

  Communicator& control() override { return communicator_; }
  void note(int gradient) override { made_[static_cast<std::size_t>(gradient)] = host_now(); }
  void await(const std::vector<int>& /*gradients*/) override {}
  Moment made(int gradient) override { return made_[static_cast<std::size_t>(gradient)]; }
  void reduce(const at::Tensor& flat, const std::function<void()>& before,
              const std::function<void()>& after) override {
    before();
    Transfer transfer{.kind = CollectiveKind::all_reduce,
                      .bytes = {static_cast<std::int64_t>(flat.nbytes())},
                      .launch = host_now()};
    communicator_.all_reduce(flat);
    communicator_.join();
    transfer.done = host_now();
    transfers_.push_back(transfer);
    after();
  }
  void join() override {}
  std::vector<Transfer> take_transfers() override {
    communicator_.take_transfers();  // among them the negotiations
    return std::exchange(transfers_, {});
  }

 private:
  Communicator& communicator_;
  std::vector<Moment> made_;
  std::vector<Transfer> transfers_;
};

}  // namespace

std::unique_ptr<FusionLane> Communicator::make_lane(std::size_t /*gradients*/) {
  throw RunError("nobody can reduce over " + backend() + " beside training");
}

std::unique_ptr<FusionLane> make_core_lane(Communicator& communicator, std::size_t gradients) {
  return std::make_unique<CoreLane>(communicator, gradients);
}

}  // namespace lockstep::runner
