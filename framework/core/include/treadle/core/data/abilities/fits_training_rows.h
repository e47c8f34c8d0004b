#pragma once

#include <cstddef>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

/// A metric whose unit is something of the training rows, such as the error of a naive forecast on
/// the training part of each series.
///
/// An optional ability of a MetricComputer (`metric.ask<FitsTrainingRows>()`). Each training fits
/// its metrics to its own training rows before the first step; what fit() gave is saved with the
/// fitted transforms, so that a model that is evaluated later is judged in the same unit.
class FitsTrainingRows {
 public:
  static constexpr std::string_view kInterface = "treadle.fits-training-rows/0";

  virtual ~FitsTrainingRows();

  /// What the metric takes from the target `target` of `rows`, ascending rows of `data`. These are
  /// the data's own rows, before transforms; where samples are made of rows, those that the
  /// training samples touch. Throws a DataError where there are too few.
  StateDict fit(const RowReader& data, const RowList& rows, std::size_t target) const {
    return do_fit(data, rows, target);
  }

  /// Takes what fit() gave, and the group (series) of each row that updates will be of, by
  /// Batch::rows: int64 [N]; undefined without groups. Called before the first update, again for
  /// other rows. Throws StorageError for another state.
  void use(const StateDict& fitted, const at::Tensor& groups) { do_use(fitted, groups); }

 private:
  virtual StateDict do_fit(const RowReader& data, const RowList& rows,
                           std::size_t target) const = 0;
  virtual void do_use(const StateDict& fitted, const at::Tensor& groups) = 0;
};

}  // namespace treadle
