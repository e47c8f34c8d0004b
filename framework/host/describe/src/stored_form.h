#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::describe::internal {

/// The enumerator that name_of() calls so, of the first `count`. Throws a StorageError for other
/// names.
template <typename Enum>
Enum named(const nlohmann::json& json, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<Enum>(i);
    if (json == std::string(name_of(value)))
      return value;
  }
  throw StorageError("expected a kind of description, got " + describe_value(json));
}

}  // namespace treadle::describe::internal
