#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace treadle::csv {

/// The different texts of one column, numbered: class names, categories, groups. Texts that are one
/// integer ("3", "3.0") are one label.
class LabelDictionary {
 public:
  static constexpr std::int64_t kMostLabels = 65536;

  LabelDictionary() = default;
  /// The labels of an earlier data set, in their order.
  explicit LabelDictionary(const std::vector<std::string>& labels);

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  const std::vector<std::string>& labels() const { return labels_; }

  /// The label's number, new ones counted up.
  std::int64_t add(std::string_view text);
  std::optional<std::int64_t> find(std::string_view text) const;

  /// Puts the labels in order, by value when all are integers, else by text, and returns the new
  /// number of each old one.
  std::vector<std::int64_t> sort();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::vector<std::string> labels_;
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace treadle::csv
