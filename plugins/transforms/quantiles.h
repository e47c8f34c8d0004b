#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// Maps columns of tables by their quantiles over the training rows. NaN is left out of these and
/// stays NaN. In float64; fit() holds a copy of the columns.
class QuantileMap : public Transform {
 public:
  ~QuantileMap() override;

 protected:
  /// Reads "columns". `component` is the transform's name. `quantiles` of them divide each column,
  /// the least and the largest value included.
  QuantileMap(const Config& config, std::string component, std::int64_t quantiles);

 private:
  /// The columns of one port that are mapped.
  struct Part {
    at::Tensor columns;  // int64; undefined: none
    at::Tensor knots;    // float64 [columns, knots]
  };

  /// Of quantiles [columns, quantiles] in ascending order: what mapped() is given.
  virtual at::Tensor knots_of(const at::Tensor& quantiles) const { return quantiles; }
  /// Whether there may be so many knots, of a saved transform.
  virtual bool may_have(std::int64_t knots) const = 0;
  /// `values` float64 [columns, n], contiguous.
  virtual at::Tensor mapped(const at::Tensor& values, const at::Tensor& knots) const = 0;

  std::vector<Part> parts_of(const DataSpec& spec) const;

  void do_fit(const RowReader& reader, const RowList& training_rows) final;
  DataSpec do_output_spec(const DataSpec& before) const final;
  void do_apply(Batch& batch, const ApplyContext& context) const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;

  ColumnChoice choice_;
  std::int64_t quantiles_;
  DataSpec before_;          // inputs only
  std::vector<Part> parts_;  // one per port
};

/// `quantile`: the share of training values below x, or the number of which a standard normal
/// variable is below with that probability. Linear between quantiles; of equal quantiles the
/// middle. As scikit-learn's QuantileTransformer, except that a constant column becomes 0.
class Quantile final : public QuantileMap {
 public:
  explicit Quantile(const Config& config);

 private:
  bool may_have(std::int64_t knots) const override;
  at::Tensor mapped(const at::Tensor& values, const at::Tensor& knots) const override;

  std::int64_t most_;
  bool is_normal_;
};

/// `quantile_bins`: with the distinct quantiles b_0 < b_1 < ... of a column as edges, x in bin t,
/// from b_(t-1) to b_t, becomes t - 1 + (x - b_(t-1)) / (b_t - b_(t-1)). The first bin goes on
/// below b_0, and the last one above its end if the column has all bins; else values end there. A
/// constant column becomes 0.
///
/// Bins of width 1 on that are the piecewise-linear encoding of Gorishniy, Rubachev and Babenko,
/// "On Embeddings for Numerical Features in Tabular Deep Learning" (2022), section 3.2.1.
class QuantileBins final : public QuantileMap {
 public:
  explicit QuantileBins(const Config& config);

 private:
  at::Tensor knots_of(const at::Tensor& quantiles) const override;
  bool may_have(std::int64_t knots) const override;
  at::Tensor mapped(const at::Tensor& values, const at::Tensor& knots) const override;

  std::int64_t bins_;
};

}  // namespace treadle::transforms
