#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace treadle::table {

/// The different texts of one column, numbered: class names, categories, groups. Where all of them
/// are integers, texts that are one integer ("3", "3.0") are one label: known once all are there,
/// so settle() or sort() joins them.
class LabelDictionary {
 public:
  static constexpr std::int64_t kMostLabels = 65536;

  LabelDictionary() = default;
  /// The labels of an earlier data set, in their order.
  explicit LabelDictionary(const std::vector<std::string>& labels);

  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  const std::vector<std::string>& labels() const { return labels_; }

  /// The text's number, new ones counted up.
  std::int64_t add(std::string_view text);
  /// Of a text, or of the integer that it is.
  std::optional<std::int64_t> find(std::string_view text) const;

  /// Joins the texts of one integer where all are integers, and returns the new number of each old
  /// one; those that stay are in the order in which they came.
  std::vector<std::int64_t> settle();
  /// The same, and puts them in order: by value where all are integers, else by text.
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

}  // namespace treadle::table
