#include "calibration/ddp_host.h"

#include "tests/catch.h"
#include "tests/synthetic.h"

namespace lockstep {
namespace {

/// Two gradients of 4 MiB: each fills a bucket of its own, whose copy takes the host 5 us.
ProfileSample sample_of(Time ddp_host) {
  ProfileSample sample;
  sample.profile = two_layers();
  sample.ddp_host = ddp_host;
  return sample;
}

const std::vector<CopyTable> kCopies{{"add", {{Bytes{4 << 20}, 2, us(90), us(90)}}},
                                     {"bucket_in", {{Bytes{4 << 20}, 1, us(20), us(5)}}}};

TEST_CASE("what DDP adds to the host, less its copies, is shared out over the gradients") {
  std::vector<ProfileSample> samples{sample_of(us(50)), sample_of(us(4)), sample_of({})};
  fit_gradient_hooks(samples, kCopies);
  CHECK(samples[0].profile.gradient_hook.host == us(20));  // (50 - 2 x 5) / 2
  CHECK(samples[1].profile.gradient_hook.host == Time{});  // not below zero
  CHECK(samples[2].profile.gradient_hook.host == us(2));   // not measured: as it was
  CHECK(samples[0].profile.gradient_hook.device == Time{});
}

TEST_CASE("small gradients share a bucket, and its copy") {
  ProfileSample sample = sample_of(us(30));
  for (Layer& layer : sample.profile.layers) layer.parameters[0].bytes = Bytes{2 << 10};
  std::vector<ProfileSample> samples{sample};
  fit_gradient_hooks(samples, kCopies);
  CHECK(samples[0].profile.gradient_hook.host.ps() == 12'500'000);  // (30 - 5) / 2
}

TEST_CASE("without copies all of it is the hooks', and a model without gradients has none") {
  std::vector<ProfileSample> samples{sample_of(us(50)), sample_of(us(50))};
  for (Layer& layer : samples[1].profile.layers) layer.parameters.clear();
  fit_gradient_hooks(samples, {});
  CHECK(samples[0].profile.gradient_hook.host == us(25));
  CHECK(samples[1].profile.gradient_hook.host == us(2));
}

}  // namespace
}  // namespace lockstep
