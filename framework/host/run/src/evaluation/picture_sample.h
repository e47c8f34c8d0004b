#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/data/row_list.h>
#include <treadle/core/validation/metric_computer.h>

#include "data/evaluated_rows.h"

namespace treadle::internal {

/// A few images beside what was predicted for them, for the report to show: the table
/// "picture_sample", a row for each. Its labels are the pictures, as data URIs; its columns "row",
/// "actual", "predicted" and, of classes, which are numbers, "probability" of the predicted one.
class PictureSample final : public MetricComputer {
 public:
  static constexpr const char* kTable = "picture_sample";
  static constexpr std::size_t kMostPictures = 12;

  /// `data` has images, and is borrowed; its parts may be null where nothing is updated.
  explicit PictureSample(const EvaluatedRows& data) : data_(data) {}
  ~PictureSample() override;

  /// Whether rows are images, and the target a class or a number of each.
  static bool is_for(const DataSpec& spec, const TargetSpec& target);

  /// Before the first update: which rows there will be. Some of them, evenly spread, are shown.
  void choose_of(const RowList& rows);

 private:
  struct Shown {
    std::string picture;
    std::vector<double> numbers;  // of the table's columns
  };

  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::int64_t columns() const { return are_classes_ ? 4 : 3; }

  const EvaluatedRows data_;
  bool are_classes_ = false;
  std::vector<std::int64_t> chosen_;  // ascending
  std::vector<Shown> shown_;
};

}  // namespace treadle::internal
