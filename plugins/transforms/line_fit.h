#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "column_statistics.h"

namespace treadle::transforms {

/// x becomes (x - shift) * scale.
struct Line {
  double shift = 0;
  double scale = 1;
};

/// The fit of a line to each column of a table that comes in pieces. NaN does not count.
class LineFit {
 public:
  virtual ~LineFit();

  /// Adds the rows of `values`, [n, columns]; their memory is the caller's.
  virtual void add(const at::Tensor& values) = 0;
  /// Adds the rows of another fit, of the same class and as many columns.
  virtual void join(const LineFit& more) = 0;
  /// Nothing for a column without values.
  virtual std::optional<Line> line(std::size_t column) const = 0;
};

/// Lines from moments and extremes: `line_for` maps the statistics of a column, which has values.
class StatisticsFit final : public LineFit {
 public:
  using LineFor = std::function<Line(const ColumnStatistics&)>;
  StatisticsFit(std::size_t columns, LineFor line_for)
      : columns_(columns), line_for_(std::move(line_for)) {}

  void add(const at::Tensor& values) override { add_rows(columns_, values); }
  void join(const LineFit& more) override;
  std::optional<Line> line(std::size_t column) const override;

 private:
  std::vector<ColumnStatistics> columns_;
  LineFor line_for_;
};

/// Lines from the median and the distance of two quantiles, as scikit-learn's RobustScaler: both by
/// linear interpolation between sorted values; a distance below 10 eps is 1. Keeps a copy of the
/// values in their dtype, since quantiles need all of them.
class QuantileFit final : public LineFit {
 public:
  /// Quantiles in [0, 1].
  QuantileFit(double lower, double upper) : lower_(lower), upper_(upper) {}

  void add(const at::Tensor& values) override;
  void join(const LineFit& more) override;
  std::optional<Line> line(std::size_t column) const override;

 private:
  double lower_;
  double upper_;
  std::vector<at::Tensor> parts_;  // [n, columns] each
};

}  // namespace treadle::transforms
