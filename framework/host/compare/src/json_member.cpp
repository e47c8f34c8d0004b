#include "json_member.h"

namespace treadle::compare {

const nlohmann::json& member(const nlohmann::json& value, std::string_view key) {
  static const nlohmann::json kNothing;
  const auto found = value.is_object() ? value.find(key) : value.end();
  return found == value.end() ? kNothing : *found;
}

}  // namespace treadle::compare
