#include "sim/workload/buckets.h"

#include <algorithm>
#include <cstddef>

#include "sim/core/error.h"

namespace lockstep {
namespace {

struct OpenBucket {
  int type = 0;
  std::size_t cap = 0;
  Bytes bytes;
  Bucket members;
};

OpenBucket& bucket_of(std::vector<OpenBucket>& open, int type) {
  auto found = std::ranges::find(open, type, &OpenBucket::type);
  if (found != open.end()) return *found;
  return open.emplace_back(OpenBucket{.type = type, .cap = 0, .bytes = {}, .members = {}});
}

}  // namespace

std::vector<Bucket> assign_buckets(std::span<const Gradient> gradients,
                                   std::span<const Bytes> caps) {
  LOCKSTEP_ASSERT(!caps.empty(), "buckets need at least one cap");
  std::vector<Bucket> closed;
  std::vector<OpenBucket> open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    OpenBucket& bucket = bucket_of(open, gradients[i].type);
    bucket.members.push_back(static_cast<int>(i));
    bucket.bytes += gradients[i].bytes;
    if (bucket.bytes < caps[bucket.cap]) continue;
    closed.push_back(std::move(bucket.members));
    bucket.members.clear();
    bucket.bytes = {};
    bucket.cap = std::min(bucket.cap + 1, caps.size() - 1);
  }
  std::erase_if(open, [](const OpenBucket& bucket) { return bucket.members.empty(); });
  std::ranges::sort(open, {}, [](const OpenBucket& bucket) { return bucket.members.front(); });
  for (OpenBucket& bucket : open) closed.push_back(std::move(bucket.members));
  return closed;
}

Bytes bytes_of(const Bucket& bucket, std::span<const Gradient> gradients) {
  Bytes bytes;
  for (const int member : bucket) bytes += gradients[static_cast<std::size_t>(member)].bytes;
  return bytes;
}

std::vector<Bucket> take_chunks(std::span<const Gradient> gradients, Bytes limit) {
  std::vector<Bucket> closed;
  std::vector<OpenBucket> open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    OpenBucket& chunk = bucket_of(open, gradients[i].type);
    if (!chunk.members.empty() && chunk.bytes + gradients[i].bytes > limit) {
      closed.push_back(std::move(chunk.members));
      chunk.members.clear();
      chunk.bytes = {};
    }
    chunk.members.push_back(static_cast<int>(i));
    chunk.bytes += gradients[i].bytes;
  }
  for (OpenBucket& chunk : open) closed.push_back(std::move(chunk.members));
  return closed;
}

}  // namespace lockstep
