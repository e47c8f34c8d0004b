#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace treadle::tokenizers {

/// Lets tables of texts be searched by views.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

template <typename Value>
using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// Texts by number and numbers by text.
class TextTable {
 public:
  TextTable() = default;
  /// Where a text occurs twice, the first of them is found.
  explicit TextTable(std::vector<std::string> texts) : texts_(std::move(texts)) {
    numbers_.reserve(texts_.size());
    for (std::size_t i = 0; i < texts_.size(); ++i)
      numbers_.emplace(texts_[i], static_cast<std::int64_t>(i));
  }

  std::int64_t size() const { return static_cast<std::int64_t>(texts_.size()); }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::string& operator[](std::int64_t number) const {
    return texts_[static_cast<std::size_t>(number)];
  }
  std::optional<std::int64_t> find(std::string_view text) const {
    const auto found = numbers_.find(text);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  bool has_twins() const { return numbers_.size() != texts_.size(); }

 private:
  std::vector<std::string> texts_;
  ByText<std::int64_t> numbers_;
};

}  // namespace treadle::tokenizers
