#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::benchmarks {

/// What a way should reach beside the best of some others.
struct Goal {
  std::string ours;
  std::vector<std::string> peers;
  double at_most = 1;
  bool is_difference =
      false;  ///< of ours minus theirs, in the unit that is measured; else of ours / theirs
};

/// What is trained: a document of Treadle, and the arrays that it reads, which every way gets. What
/// only the benchmarks have to know stands in the document under extensions.benchmark.
class Workload {
 public:
  /// Throws what nlohmann_json throws.
  explicit Workload(const std::filesystem::path& document);

  /// The same with the first of its rows alone, so many that an epoch has `steps` steps.
  Workload shortened(std::int64_t steps, int epochs) const;

  /// As it is measured on an accelerator, with its own batch size and goals, where the document has
  /// such.
  Workload on_device() const;

  const std::string& name() const { return name_; }
  /// In words, for people: "32-64-64-1, batch 32".
  const std::string& description() const { return description_; }
  /// The chapter of measurements that it is for.
  const std::string& chapter() const { return chapter_; }
  const std::vector<Goal>& goals() const { return goals_; }
  /// Shards of the ways with two cores; absent: there are none.
  std::optional<int> shards_for_two() const { return shards_for_two_; }
  /// Steps between checkpoints; 0: none but the usual.
  std::int64_t save_every() const { return save_every_; }
  int epochs() const { return document_.at("training").at("epochs"); }
  /// Four fifths of the rows train.
  std::int64_t steps_per_epoch() const;

  /// Writes workflow.json, x.npy and y.npy. The same rows every time.
  void write(const std::filesystem::path& folder) const;

 private:
  void write_arrays(const std::filesystem::path& folder) const;

  nlohmann::json document_;
  std::string name_;
  std::string description_;
  std::string chapter_;
  std::vector<Goal> goals_;
  std::optional<int> shards_for_two_;
  std::int64_t save_every_ = 0;
  std::int64_t rows_ = 0;
  std::vector<std::int64_t> row_;  ///< the shape of one
  std::int64_t classes_ = 0;       ///< 0: the targets are numbers
};

}  // namespace treadle::benchmarks
