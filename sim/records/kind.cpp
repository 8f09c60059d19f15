#include "sim/records/kind.h"

#include "sim/records/json_fields.h"
#include "sim/records/json_text.h"

namespace lockstep {

std::string record_kind(const std::string& file) {
  const nlohmann::json document = read_json(file);
  const JsonPath at(file);
  JsonReader in(document, at);
  std::string kind;
  in.field("kind", kind);
  return kind;
}

}  // namespace lockstep
