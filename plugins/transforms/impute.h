#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// `impute`: NaN becomes the mean, the median or the most frequent of the column's training values,
/// or a given number; a missing category the most frequent or a given one. Afterwards no column of
/// those may be missing.
class Impute final : public Transform {
 public:
  explicit Impute(const Config& config);
  ~Impute() override;

 private:
  /// What one number stands for a column's values, which are at least one, in any order.
  using Statistic = double (*)(std::vector<double>& values);

  struct Filling {
    at::Tensor fill;         // float64 [columns]; NaN for columns that stay as they are
    at::Tensor single_fill;  // float32, for float32 batches
    at::Tensor indicated;    // int64: the columns that get an indicator; undefined for none
  };

  std::vector<std::vector<bool>> choose(const DataSpec& spec) const;
  double fill_for(const RowReader& reader, std::span<const std::int64_t> rows, std::size_t port,
                  std::size_t column) const;
  void prepare(const DataSpec& before, std::vector<at::Tensor> fills);

  void do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) override;
  DataSpec do_output_spec(const DataSpec& before) const override;
  void do_apply(Batch& batch, const ApplyContext& context) const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  ColumnChoice choice_;
  Statistic statistic_ = nullptr;  // null: the given number
  double value_ = 0;
  std::optional<std::string> category_;
  bool indicator_ = false;
  DataSpec before_;  // inputs only
  std::vector<Filling> fillings_;
};

}  // namespace treadle::transforms
