#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// `impute`: NaN becomes the mean, the median or the most frequent of the column's training values,
/// or a given number; a missing category (-1) the most frequent or a given one. Afterwards no
/// column of those may be missing. Indicators come behind the columns of the features.
class Impute final : public Transform {
 public:
  explicit Impute(const Config& config);
  ~Impute() override;

 private:
  /// What one number stands for a column's values, which are at least one, in any order.
  using Statistic = double (*)(std::vector<double>& values);

  /// One port.
  struct Filling {
    at::Tensor fill;  // [columns]: float64, NaN for columns that stay as they are; or int64, -1
    at::Tensor single_fill;      // float32, for float32 batches
    at::Tensor indicated;        // int64: the columns that get an indicator; undefined for none
    std::size_t indicators = 0;  // the port of features that has the indicators, by its place after
  };

  std::vector<std::vector<bool>> choose(const DataSpec& spec) const;
  double fill_for(const RowReader& reader, const RowList& rows, std::size_t port,
                  std::size_t column) const;
  /// The inputs after this transform; `places` says where each port's indicators are.
  std::vector<PortSpec> ports_after(const DataSpec& before, std::vector<std::size_t>& places) const;
  void prepare(const DataSpec& before, std::vector<at::Tensor> fills);

  void do_fit(const RowReader& reader, const RowList& training_rows) override;
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
  std::vector<PortSpec> after_;
};

}  // namespace treadle::transforms
