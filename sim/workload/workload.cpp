#include "sim/workload/workload.h"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// y at x on the line through (x0, y0) and (x1, y1).
Time on_line(Bytes x, Bytes x0, Time y0, Bytes x1, Time y1) {
  const std::int64_t rise = multiply_divide((y1 - y0).ps(), (x - x0).count, (x1 - x0).count);
  return std::max(Time{}, y0 + Time::picoseconds(rise));
}

}  // namespace

std::vector<std::uint32_t> backward_order(const Profile& profile) {
  std::vector<std::uint32_t> order(profile.layers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(
      order, {}, [&profile](std::uint32_t layer) { return profile.layers[layer].backward_order; });
  return order;
}

std::vector<const Parameter*> parameters_of(const Profile& profile) {
  std::vector<const Parameter*> parameters;
  for (const Layer& layer : profile.layers) {
    for (const Parameter& parameter : layer.parameters) parameters.push_back(&parameter);
  }
  return parameters;
}

std::vector<const Parameter*> parameters_as_ready(const Profile& profile) {
  std::vector<const Parameter*> ready = parameters_of(profile);
  std::ranges::stable_sort(ready, {}, &Parameter::ready_order);
  return ready;
}

std::vector<Gradient> gradients_of(std::span<const Parameter* const> parameters) {
  std::vector<Gradient> gradients;
  for (const Parameter* parameter : parameters) gradients.push_back({parameter->bytes});
  return gradients;
}

bool counts_batches(const Layer& layer) {
  return layer.buffers > Bytes{} && layer.kind.ends_with("norm");
}

BufferBytes buffer_bytes(const Profile& profile) {
  constexpr Bytes kCounter{8};
  BufferBytes total;
  for (const Layer& layer : profile.layers) {
    total.floats += layer.buffers;
    if (counts_batches(layer)) total.counters += kCounter;
  }
  return total;
}

Cost copy_cost(const CopyTable& table, Bytes bytes) {
  const std::vector<CopyPoint>& points = table.points;
  if (points.empty()) return {};
  const auto above = std::ranges::lower_bound(points, bytes, {}, &CopyPoint::bytes);
  const CopyPoint& high = above == points.end() ? points.back() : *above;
  if (high.bytes == bytes || above == points.begin()) {
    return {.host = high.host, .device = high.device, .launches = 1};
  }
  if (above == points.end()) {
    const Time device = Time::picoseconds(multiply_divide(
        high.device.ps(), bytes.count, std::max<std::int64_t>(1, high.bytes.count)));
    return {.host = high.host, .device = device, .launches = 1};
  }
  const CopyPoint& low = *(above - 1);
  return {.host = on_line(bytes, low.bytes, low.host, high.bytes, high.host),
          .device = on_line(bytes, low.bytes, low.device, high.bytes, high.device),
          .launches = 1};
}

}  // namespace lockstep
