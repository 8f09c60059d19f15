#include "sim/records/json_quick.h"

#ifdef LOCKSTEP_SIMDJSON
#include <simdjson.h>

#include <utility>

#include "sim/records/json_text.h"
#endif

namespace lockstep {

using nlohmann::json;

#ifdef LOCKSTEP_SIMDJSON
namespace {

namespace dom = simdjson::dom;

/// Copies `in` to `out`; false where an object has a key twice.
bool convert(dom::element in, json& out) {
  switch (in.type()) {
    case dom::element_type::ARRAY: {
      const dom::array items(in);
      auto& array = (out = json::array()).get_ref<json::array_t&>();
      array.resize(items.size());
      auto next = array.begin();
      for (const dom::element item : items) {
        if (!convert(item, *next++)) return false;
      }
      return true;
    }
    case dom::element_type::OBJECT: {
      auto& object = (out = json::object()).get_ref<json::object_t&>();
      for (const auto [key, value] : dom::object(in)) {
        const auto [place, added] = object.try_emplace(std::string(key));
        if (!added || !convert(value, place->second)) return false;
      }
      return true;
    }
    case dom::element_type::INT64: {
      const auto value = std::int64_t(in);
      out = value < 0 ? json(value) : json(static_cast<std::uint64_t>(value));  // as nlohmann does
      return true;
    }
    case dom::element_type::UINT64:
      out = std::uint64_t(in);
      return true;
    case dom::element_type::DOUBLE:
      out = double(in);
      return true;
    case dom::element_type::STRING:
      out = std::string(std::string_view(in));
      return true;
    case dom::element_type::BOOL:
      out = bool(in);
      return true;
    case dom::element_type::NULL_VALUE:
      out = nullptr;
      return true;
  }
  return false;
}

}  // namespace

std::optional<json> parse_json_quickly(const std::string& text) {
  // A document may be kDeepestJson levels deep and hold a scalar at the innermost; counted the
  // same.
  simdjson::dom::parser parser;
  dom::element root;
  json out;
  if (parser.allocate(text.size(), kDeepestJson) != simdjson::SUCCESS ||
      parser.parse(text).get(root) != simdjson::SUCCESS || !convert(root, out)) {
    return std::nullopt;
  }
  return out;
}
#else
std::optional<json> parse_json_quickly(const std::string&) {
  return std::nullopt;
}
#endif

}  // namespace lockstep
