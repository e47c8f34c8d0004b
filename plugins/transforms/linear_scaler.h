#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/abilities/fits_groups.h>
#include <treadle/core/data/transform.h>

#include "column_choice.h"
#include "line_fit.h"
#include "lines.h"

namespace treadle::transforms {

/// (x - shift) * scale, with two numbers for each column, channel or last dimension that a derived
/// class fits to the training rows: to all of them, or to those of each group. Padding is left out
/// and stays 0. Inputs are changed in place, in two passes over the batch; columns that are not
/// chosen have 0 and 1. Categories and tokens are never changed.
class LinearScaler : public Transform, public FitsGroups {
 public:
  ~LinearScaler() override;

 protected:
  /// Reads "columns", "inputs", "axis", "target", "by" and "handle_unknown". `component` is the
  /// transform's name.
  LinearScaler(const Config& config, std::string component);

 private:
  /// The dimension of a row whose indices have a line of their own.
  enum class Axis { kAuto, kFirst, kLast, kNone };

  /// One input: what to do with it.
  struct Choice {
    bool is_chosen = false;
    std::vector<bool> columns;  // of a table: those that are scaled
    Axis axis = Axis::kLast;
    std::optional<std::size_t> lengths;  // the port with its lengths

    Lines::Dimension dimension() const {
      return axis == Axis::kFirst ? Lines::Dimension::kFirst : Lines::Dimension::kLast;
    }
  };

  /// One target.
  struct TargetChoice {
    bool is_chosen = false;
    std::optional<std::size_t> lengths;  // the port with its lengths
  };

  /// The fits to some rows: of each port and target, null where it is not chosen.
  struct Fits {
    std::vector<std::unique_ptr<LineFit>> inputs;
    std::vector<std::unique_ptr<LineFit>> targets;
    std::int64_t first_row = 0;

    void join(const Fits& more);
  };
  using FitsOfPart = std::vector<std::unique_ptr<LineFit>> Fits::*;

  virtual std::unique_ptr<LineFit> start_fit(std::size_t columns) const = 0;
  /// Whether an input is scaled where neither inputs nor columns are named.
  virtual bool takes_whole(const PortSpec& /*port*/) const { return true; }

  Axis axis_of(const PortSpec& port) const;
  std::vector<Choice> choose(const DataSpec& spec) const;
  std::vector<TargetChoice> choose_targets(const DataSpec& spec) const;
  void prepare(const DataSpec& before);

  std::size_t lines_in(std::size_t input) const;

  Fits start() const;
  void add(const Batch& batch, Fits& fits) const;
  /// By place; by group it sets places_.
  std::vector<Fits> fitted(const RowReader& reader, const RowList& rows);
  Line line_of(const std::vector<Fits>& by_place, std::size_t place, FitsOfPart part,
               std::size_t index, std::size_t column, const RowReader& reader) const;

  void do_fit(const RowReader& reader, const RowList& training_rows) final;
  DataSpec do_output_spec(const DataSpec& before) const final;
  void do_apply(Batch& batch, const ApplyContext& context) const final;
  /// Targets are scaled on the host, where metrics and losses over all rows read them. So is what
  /// depends on groups, whose numbers are there.
  bool do_works_on_device() const final { return !scales_targets_ && !by_group_; }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const final;
  void* do_ask(std::string_view interface_id) final;
  at::Tensor do_groups() const final;
  bool do_takes_other_groups() const final { return has_overall_; }
  at::Tensor do_invert_groups(const at::Tensor& predictions, std::string_view target,
                              const at::Tensor& groups) const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;

  ColumnChoice columns_;
  std::optional<std::vector<std::string>> input_names_;
  Axis axis_ = Axis::kAuto;
  bool scales_targets_ = false;
  std::vector<std::string> target_names_;  // empty: all targets of numbers
  bool by_group_ = false;
  bool has_overall_ = false;                  // for rows of groups without training rows
  DataSpec before_;                           // what fit() saw
  std::vector<Choice> choices_;               // one per port
  std::vector<TargetChoice> chosen_targets_;  // one per target
  GroupPlaces places_;
  std::vector<Lines> inputs_;   // one per port
  std::vector<Lines> targets_;  // one per target
};

/// `standardize`: mean 0 and standard deviation 1. A constant column becomes 0.
class Standardize final : public LinearScaler {
 public:
  explicit Standardize(const Config& config) : LinearScaler(config, "standardize") {}

 private:
  std::unique_ptr<LineFit> start_fit(std::size_t columns) const override;
};

/// `min_max`: from the lower to the upper end of a range. A constant column becomes the lower end.
class MinMax final : public LinearScaler {
 public:
  explicit MinMax(const Config& config);

 private:
  std::unique_ptr<LineFit> start_fit(std::size_t columns) const override;

  double lower_ = 0;
  double upper_ = 1;
};

/// `robust`: median 0 and interquartile range 1, or the distance of two other quantiles. Outliers
/// change neither.
class Robust final : public LinearScaler {
 public:
  explicit Robust(const Config& config);

 private:
  std::unique_ptr<LineFit> start_fit(std::size_t columns) const override;

  double lower_ = 0.25;
  double upper_ = 0.75;
};

}  // namespace treadle::transforms
