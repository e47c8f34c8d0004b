#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/random.h>

namespace treadle {

/// Names one fit (one training) of a run by its path in the tree of fits: "fold-2", "final",
/// "trial-7/fold-2". The path is also where its checkpoints lie below the run's folder.
///
/// A part of the path has a name, and a number that is its own among its siblings. The random
/// streams of a fit hang on the numbers along its path, so they depend neither on the order in
/// which fits run nor on how many there are.
class FitId {
 public:
  /// "final", the only fit of its run.
  FitId() : FitId("final", 0, 1) {}
  /// A fit at the top of the tree. `count` is how many siblings are planned, itself among them.
  /// Throws ContractViolation unless is_part(name) and 0 <= index.
  FitId(std::string_view name, std::int64_t index, std::int64_t count);
  /// A fit, or a group of fits, below this one.
  FitId child(std::string_view name, std::int64_t index, std::int64_t count) const;

  /// Whether `name` can be a part of a path: 1 to 64 letters, digits, '-' and '_', the first no
  /// '-'. So a path is good as a folder, as a field of a CSV file and on a command line.
  static bool is_part(std::string_view name);
  static constexpr std::string_view kPartRule =
      "a name has 1 to 64 letters, digits, '-' and '_', and does not begin with '-'";

  const std::string& path() const { return path_; }
  /// Its number among its siblings, from 0.
  std::int64_t index() const { return indices_.back(); }
  /// That of each part of the path, from the top.
  const std::vector<std::int64_t>& indices() const { return indices_; }
  std::int64_t count() const { return count_; }
  /// The path of the group it belongs to; empty at the top.
  std::string group() const;

  /// The streams of this fit, given those of the run.
  RandomStreams random(const RandomStreams& of_run) const;

  bool operator==(const FitId& other) const { return path_ == other.path_; }

 private:
  std::string path_;
  std::vector<std::int64_t> indices_;  // of every part
  std::int64_t count_;
};

}  // namespace treadle
