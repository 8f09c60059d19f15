#include "sim/records/profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/records/profile_fields.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr auto kParameter = [](auto& io, auto& parameter) {
  io.field("name", parameter.name);
  io.field("bytes", parameter.bytes);
  io.field("ready_order", parameter.ready_order);
};

constexpr auto kLayerStructure = [](auto& io, auto& layer) {
  io.field("name", layer.name);
  io.field("kind", layer.kind);
  io.field("backward_order", layer.backward_order);
  io.field("buffers_bytes", layer.buffers);
  io.rows("parameters", layer.parameters, kParameter);
};

bool same(const Parameter& a, const Parameter& b) {
  return a.name == b.name && a.bytes == b.bytes && a.ready_order == b.ready_order;
}

bool same_structure(const Layer& a, const Layer& b) {
  return a.name == b.name && a.kind == b.kind && a.backward_order == b.backward_order &&
         a.buffers == b.buffers &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(), same);
}

bool is_permutation(std::vector<int> orders) {
  std::sort(orders.begin(), orders.end());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (orders[i] != static_cast<int>(i)) return false;
  }
  return true;
}

constexpr double kLeastHost = 1e-3, kMostHost = 1e3;

double total_ns(const Cost& cost) {
  return (cost.host.seconds() + cost.device.seconds()) * 1e9;
}

}  // namespace

Bytes parameter_bytes(const Layer& layer) {
  Bytes sum;
  for (const Parameter& parameter : layer.parameters) sum += parameter.bytes;
  return sum;
}

Bytes parameter_bytes(const Profile& profile) {
  Bytes sum;
  for (const Layer& layer : profile.layers) sum += parameter_bytes(layer);
  return sum;
}

int structure_of(const Profile& profile, Structures& structures) {
  const auto& layers = profile.layers;
  for (std::size_t i = 0; i < structures.lists.size(); ++i) {
    const auto& list = structures.lists[i];
    if (structures.models[i] == profile.model &&
        std::equal(layers.begin(), layers.end(), list.begin(), list.end(), same_structure)) {
      return static_cast<int>(i);
    }
  }
  structures.lists.push_back(layers);
  structures.models.push_back(profile.model);
  return static_cast<int>(structures.lists.size()) - 1;
}

void read_structures(JsonReader& in, Structures& structures) {
  const json& list = in.child("structures");
  const JsonPath at = in.at().child("structures");
  require_array(list, at);
  structures.lists.resize(list.size());
  structures.models.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonPath place = at.child(i);
    JsonReader item(list[i], place);
    item.field("model", structures.models[i]);
    read_table(item.child("layers"), place.child("layers"), structures.lists[i], kLayerStructure);
    item.finish();
    if (structures.lists[i].empty()) place.child("layers").fail("a model without layers");
  }
}

void write_structures(JsonWriter& out, const Structures& structures) {
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < structures.lists.size(); ++i) {
    JsonWriter item;
    item.field("model", structures.models[i]);
    item.put("layers", write_table(structures.lists[i], kLayerStructure));
    list.push_back(item.take());
  }
  out.put("structures", std::move(list));
}

void check_profile(const Profile& profile, const JsonPath& at) {
  std::vector<int> backward, ready;
  double sum_ns = total_ns(profile.optimizer) + total_ns(profile.step_overhead) +
                  (profile.input_load + profile.input_copy + profile.step).seconds() * 1e9;
  for (const Layer& layer : profile.layers) {
    backward.push_back(layer.backward_order);
    for (const Parameter& parameter : layer.parameters) ready.push_back(parameter.ready_order);
    sum_ns += total_ns(layer.forward) + total_ns(layer.backward);
  }
  for (std::size_t rank = 0; rank < profile.host_of_rank.size(); ++rank) {
    const double factor = profile.host_of_rank[rank];
    if (factor < kLeastHost || factor > kMostHost) {
      at.child("host_of_rank")
          .child(rank)
          .fail(fmt::format("{} times the profile's", factor), "between 0.001 and 1000");
    }
  }
  if (!is_permutation(backward)) {
    at.fail("the backward_order of its layers is not a permutation",
            "each place from 0 must occur once");
  }
  if (!is_permutation(ready)) {
    at.fail("the ready_order of its parameters is not a permutation",
            "each place from 0 must occur once");
  }
  if (sum_ns > kLongestNs) {
    at.fail(fmt::format("its times add up to {:.3g} s", sum_ns * 1e-9), "an hour is the most");
  }
}

void read_layers(JsonReader& in, Profile& profile, const Structures& structures) {
  int index = 0;
  in.field("structure", index);
  if (static_cast<std::size_t>(index) >= structures.lists.size()) {
    in.at().child("structure").fail(fmt::format("there is no structure {}", index));
  }
  const auto& layers = structures.lists[static_cast<std::size_t>(index)];
  if (structures.models[static_cast<std::size_t>(index)] != profile.model) {
    in.at().child("structure").fail("this is the structure of another model");
  }
  const json& table = in.child("layers");
  const JsonPath at = in.at().child("layers");
  profile.layers = layers;
  read_table(table, at, profile.layers, kLayerCost);
  if (profile.layers.size() != layers.size()) {
    at.child("rows").fail(
        fmt::format("{} rows for {} layers", profile.layers.size(), layers.size()));
  }
}

void write_layers(JsonWriter& out, const Profile& profile, Structures& structures) {
  out.field("structure", structure_of(profile, structures));
  out.put("layers", write_table(profile.layers, kLayerCost));
}

}  // namespace lockstep
