#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/search/search_space.h>

// The rules of a search space that hold wherever its dimensions come from, a document or code.
namespace treadle::internal {

/// Integers up to here are doubles without rounding.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

/// Collects the problems of a space, with their places where it is that of a document.
class SpaceProblems {
 public:
  explicit SpaceProblems(const Config* space) : space_(space) {}

  /// The dimension is one of those that are written as `key`.
  void is_written_as(const std::string& name, const std::string& key) { keys_[name] = key; }
  const std::string& key_of(const std::string& name) const {
    const auto found = keys_.find(name);
    return found == keys_.end() ? name : found->second;
  }

  /// `key` is one of the dimension's own keys, or empty.
  void add(const std::string& name, std::string_view key, std::string message);

  std::size_t count() const { return problems_.size(); }
  void throw_if_any() {
    if (!problems_.empty())
      throw DocumentError(std::move(problems_));
  }

 private:
  const Config* space_;
  std::map<std::string, std::string> keys_;  // by name, where they differ
  std::vector<Problem> problems_;
};

/// The key that a dimension is written with: "log_uniform".
std::string_view key_of(const Dimension& dimension);

/// A number of a document, nothing where the kind of dimension has no such number.
std::optional<double> bound_of(const nlohmann::json& value, Dimension::Kind kind);

double sum_of(const std::vector<double>& weights);

/// Everything but the condition.
void check_dimension(const Dimension& dimension, SpaceProblems& problems);

/// The parent of a condition, or null and a problem.
const Dimension* parent_of(const Dimension& child, std::string_view parent,
                           const std::vector<Dimension>& dimensions, SpaceProblems& problems);

}  // namespace treadle::internal
