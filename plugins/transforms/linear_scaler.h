#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/device_constant.h>
#include <treadle/core/transform.h>

#include "column_choice.h"
#include "column_statistics.h"

namespace treadle::transforms {

/// (x - shift) * scale, with two numbers for each column, channel or last dimension that a derived
/// class chooses from statistics over the training rows. Padding is left out of the statistics and
/// stays 0. Inputs are changed in place, in two passes over the batch; columns that are not chosen
/// have 0 and 1. Categories and tokens are never changed.
class LinearScaler : public Transform {
 public:
  ~LinearScaler() override;

 protected:
  /// Reads "columns", "inputs", "axis" and "target". `component` is the transform's name.
  LinearScaler(const Config& config, std::string component);

  struct Line {
    double shift = 0;
    double scale = 1;
  };

 private:
  /// The dimension of a row whose indices have a line of their own.
  enum class Axis { kAuto, kFirst, kLast, kNone };

  /// One input or target.
  struct Lines {
    Lines() = default;
    Lines(const std::vector<Line>& lines, Axis axis, std::size_t dimensions);
    Lines(const at::Tensor& shift, const at::Tensor& scale, Axis axis, std::size_t dimensions);

    bool defined() const { return shift.is_defined(); }
    void apply(at::Tensor& values) const;

    DeviceConstant shift;  // shaped to be broadcast over a batch
    DeviceConstant scale;
  };

  /// One input: what to do with it.
  struct Choice {
    bool is_chosen = false;
    std::vector<bool> columns;  // of a table: those that are scaled
    Axis axis = Axis::kLast;
    std::optional<std::size_t> lengths;  // the port with its lengths
  };

  /// The line for some numbers; there is at least one.
  virtual Line line_for(const ColumnStatistics& column) const = 0;

  Axis axis_of(const PortSpec& port) const;
  std::vector<Choice> choose(const DataSpec& spec) const;
  std::vector<bool> choose_targets(const DataSpec& spec) const;
  void prepare(const DataSpec& before);
  std::vector<Line> lines_for(const std::vector<ColumnStatistics>& columns) const;

  /// Of each port or target, of each of its lines.
  using Statistics = std::vector<std::vector<ColumnStatistics>>;
  /// Adds the given rows; those without lines are left out.
  void add_all(const RowReader& reader, const RowList& training_rows, Statistics& inputs,
               Statistics& targets,
               const std::vector<std::optional<std::size_t>>& target_lengths) const;

  void do_fit(const RowReader& reader, const RowList& training_rows) final;
  DataSpec do_output_spec(const DataSpec& before) const final;
  void do_apply(Batch& batch, const ApplyContext& context) const final;
  /// Targets are scaled on the host, where metrics and losses over all rows read them.
  bool do_works_on_device() const final { return !scales_targets_; }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;

  ColumnChoice columns_;
  std::optional<std::vector<std::string>> input_names_;
  Axis axis_ = Axis::kAuto;
  bool scales_targets_ = false;
  std::vector<std::string> target_names_;  // empty: all targets of numbers
  DataSpec before_;                        // what fit() saw
  std::vector<Choice> choices_;            // one per port
  std::vector<bool> chosen_targets_;
  std::vector<Lines> inputs_;   // one per port
  std::vector<Lines> targets_;  // one per target
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
