#include "result/json_path.h"

namespace treadle::internal {

const nlohmann::json& at_path(const nlohmann::json& value,
                              std::initializer_list<std::string_view> path) {
  static const nlohmann::json kNothing;
  const nlohmann::json* here = &value;
  for (std::string_view key : path) {
    if (!here->is_object())
      return kNothing;
    const auto found = here->find(key);
    if (found == here->end())
      return kNothing;
    here = &*found;
  }
  return *here;
}

std::string text_at_path(const nlohmann::json& value,
                         std::initializer_list<std::string_view> path) {
  const nlohmann::json& found = at_path(value, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

}  // namespace treadle::internal
