#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/transform.h>

#include "column_choice.h"
#include "column_statistics.h"

namespace treadle::transforms {

/// (x - shift) * scale for each column, with two numbers per column that a derived class chooses
/// from the column's statistics over the training rows. The inputs are changed in place, in two
/// passes over the batch; columns that are not chosen have 0 and 1. Categories are never chosen.
class LinearScaler : public Transform {
 public:
  ~LinearScaler() override;

 protected:
  /// Reads "columns" and "target". `component` is the transform's name.
  LinearScaler(const Config& config, std::string component);

  struct Line {
    double shift = 0;
    double scale = 1;
  };

 private:
  /// One port, or the targets. Undefined tensors for a port that is not a table.
  struct Lines {
    Lines() = default;
    explicit Lines(const std::vector<Line>& lines);
    Lines(at::Tensor shift, at::Tensor scale);

    bool defined() const { return shift.defined(); }
    void apply(at::Tensor& values) const;

    at::Tensor shift;  // float64 [columns]
    at::Tensor scale;
    at::Tensor single_shift;  // float32, for float32 batches
    at::Tensor single_scale;
  };

  /// The line for one column; `column` has at least one number.
  virtual Line line_for(const ColumnStatistics& column) const = 0;

  Lines lines_for(const std::vector<ColumnStatistics>& columns,
                  const std::vector<bool>& chosen) const;
  std::vector<std::vector<bool>> choose(const DataSpec& spec) const;

  void do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) final;
  DataSpec do_output_spec(const DataSpec& before) const final;
  void do_apply(Batch& batch, const ApplyContext& context) const final;
  at::Tensor do_invert(const at::Tensor& predictions) const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;

  ColumnChoice choice_;
  bool scales_target_;
  std::vector<Lines> inputs_;  // one per port
  Lines target_;
};

/// `standardize`: mean 0 and standard deviation 1. A constant column becomes 0.
class Standardize final : public LinearScaler {
 public:
  explicit Standardize(const Config& config) : LinearScaler(config, "standardize") {}

 private:
  Line line_for(const ColumnStatistics& column) const override;
};

/// `min_max`: from the lower to the upper end of a range. A constant column becomes the lower end.
class MinMax final : public LinearScaler {
 public:
  explicit MinMax(const Config& config);

 private:
  Line line_for(const ColumnStatistics& column) const override;

  double lower_ = 0;
  double upper_ = 1;
};

}  // namespace treadle::transforms
