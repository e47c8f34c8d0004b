#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::metrics {

/// The parameter "quantiles": levels in ascending order, and what the extras of a prediction call
/// them.
class QuantileExtras {
 public:
  /// `metric` is the component's name.
  QuantileExtras(std::vector<double> levels, std::string_view metric);
  static std::vector<double> levels_in(const Config& config);

  const std::vector<double>& levels() const { return levels_; }
  const std::vector<std::string>& names() const { return names_; }  ///< "q0.1"

  /// The predicted quantile. The median may be the prediction itself. Throws DataError that lists
  /// the quantiles there are.
  const at::Tensor& in(const Prediction& prediction, std::size_t quantile) const;

 private:
  std::vector<double> levels_;
  std::vector<std::string> names_;
  std::string metric_;
};

}  // namespace treadle::metrics
