#include "quantiles.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/special_ndtri.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::transforms {
namespace {

bool is_number(const Column& column) {
  return column.categories.empty();
}

std::string knots_key(std::size_t port) {
  return "input_" + std::to_string(port) + "_knots";
}

/// `count` evenly spaced quantiles of each column of `rows` [n, columns], linear between two values
/// as NumPy's: [columns, count]. NaN where a column has no value.
at::Tensor quantiles_of(const at::Tensor& rows, std::int64_t count) {
  // NaN is sorted behind all numbers.
  const at::Tensor sorted = std::get<0>(at::sort(rows.t().contiguous(), -1));
  const at::Tensor last = at::isnan(sorted).logical_not().sum(-1, /*keepdim=*/true).sub(1);
  const at::Tensor shares = at::linspace(0, 1, count, rows.options());
  const at::Tensor places = last.clamp_min(0).to(at::kDouble).mul(shares);
  const at::Tensor low = places.floor().to(at::kLong);
  const at::Tensor lower = sorted.gather(-1, low);
  const at::Tensor upper =
      sorted.gather(-1, at::minimum(low.add(1), last.clamp_min(0).expand_as(low)));
  const at::Tensor between = lower.add(upper.sub(lower).mul(places.sub(places.floor())));
  // Rounding may leave a quantile below the one before it.
  return std::get<0>(between.cummax(-1));
}

/// Which edge of each column each value comes behind, of those that another one follows.
at::Tensor edge_before(const at::Tensor& values, const at::Tensor& edges, const at::Tensor& most) {
  return at::minimum(at::searchsorted(edges, values, /*out_int32=*/false, /*right=*/true).sub(1),
                     most.expand_as(values))
      .clamp_min(0);
}

}  // namespace

QuantileMap::QuantileMap(const Config& config, std::string component, std::int64_t quantiles)
    : choice_(config, std::move(component)), quantiles_(quantiles) {}

QuantileMap::~QuantileMap() = default;

std::vector<QuantileMap::Part> QuantileMap::parts_of(const DataSpec& spec) const {
  const std::vector<std::vector<bool>> chosen =
      choice_.choose(spec, is_number, "is a category; it has no quantiles");
  if (!any_chosen(chosen)) {
    throw DataError(choice_.component() +
                    ": no input has columns of numbers; leave the transform out; the inputs are " +
                    described_inputs(spec));
  }
  std::vector<Part> parts(spec.inputs.size());
  for (std::size_t port = 0; port < parts.size(); ++port) {
    std::vector<std::int64_t> columns;
    for (std::size_t c = 0; c < chosen[port].size(); ++c) {
      if (chosen[port][c])
        columns.push_back(static_cast<std::int64_t>(c));
    }
    if (columns.empty())
      continue;
    const std::vector<std::int64_t>& shape = spec.inputs[port].shape;
    if (std::find(shape.begin(), shape.end(), kVaries) != shape.end()) {
      throw DataError(choice_.component() + ": takes tables, and windows of one length; rows of " +
                      quote_text(spec.inputs[port].name) + " differ in length");
    }
    parts[port].columns = at::tensor(columns, at::kLong);
  }
  return parts;
}

void QuantileMap::do_fit(const RowReader& reader, const RowList& training_rows) {
  before_.inputs = reader.spec().inputs;
  parts_ = parts_of(before_);
  std::vector<std::vector<at::Tensor>> chunks(parts_.size());
  for_each_chunk(reader, training_rows, [&](const Batch& batch) {
    for (std::size_t port = 0; port < parts_.size(); ++port) {
      if (!parts_[port].columns.defined())
        continue;
      const at::Tensor values = batch.inputs[port].index_select(-1, parts_[port].columns);
      chunks[port].push_back(values.reshape({-1, values.size(-1)}).to(at::kDouble));
    }
  });
  for (std::size_t port = 0; port < parts_.size(); ++port) {
    if (chunks[port].empty())
      continue;
    const at::Tensor rows = at::cat(std::exchange(chunks[port], {}));
    const std::int64_t count = std::max<std::int64_t>(2, std::min(quantiles_, rows.size(0)));
    const at::Tensor quantiles = quantiles_of(rows, count);
    const at::Tensor empty = at::isnan(quantiles.select(-1, 0)).nonzero();
    if (empty.numel() > 0) {
      const auto column = parts_[port].columns[empty[0][0]].item<std::int64_t>();
      throw DataError(
          choice_.component() + ": column " +
          quote_text(before_.inputs[port].columns[static_cast<std::size_t>(column)].name) +
          " has no value in the training rows; leave it out of the data's \"columns\"");
    }
    parts_[port].knots = knots_of(quantiles).contiguous();
  }
}

DataSpec QuantileMap::do_output_spec(const DataSpec& before) const {
  static_cast<void>(parts_of(before));
  return before;
}

void QuantileMap::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == parts_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  for (std::size_t port = 0; port < parts_.size(); ++port) {
    const Part& part = parts_[port];
    at::Tensor& input = batch.inputs[port];
    if (!part.columns.defined())
      continue;
    TREADLE_EXPECTS(
        input.size(-1) == static_cast<std::int64_t>(before_.inputs[port].columns.size()),
        "the batch has other columns than the data this transform was fitted on");
    const at::Tensor values = input.index_select(-1, part.columns);
    const at::Tensor by_column = values.reshape({-1, values.size(-1)}).to(at::kDouble).t();
    const at::Tensor result = mapped(by_column.contiguous(), part.knots);
    input.index_copy_(-1, part.columns,
                      result.t().reshape(values.sizes()).to(values.scalar_type()));
  }
}

StateDict QuantileMap::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  for (std::size_t port = 0; port < parts_.size(); ++port) {
    if (parts_[port].knots.defined())
      state.put(knots_key(port), parts_[port].knots);
  }
  return state;
}

void QuantileMap::do_load_state(const StateDict& state) {
  DataSpec before;
  before.inputs = data_spec_from_json(state.value("before")).inputs;
  std::vector<Part> parts = parts_of(before);
  for (std::size_t port = 0; port < parts.size(); ++port) {
    if (!parts[port].columns.defined())
      continue;
    const at::Tensor knots = state.tensor(knots_key(port));
    const std::int64_t columns = parts[port].columns.size(0);
    if (knots.scalar_type() != at::kDouble || knots.dim() != 2 || knots.size(0) != columns ||
        !may_have(knots.size(1))) {
      throw StorageError(choice_.component() + ": saved quantiles must be float64, of " +
                         std::to_string(columns) + " columns");
    }
    parts[port].knots = knots.contiguous();
  }
  before_ = std::move(before);
  parts_ = std::move(parts);
}

Quantile::Quantile(const Config& config)
    : QuantileMap(config, "quantile", config.get<std::int64_t>("n_quantiles")),
      most_(config.get<std::int64_t>("n_quantiles")),
      is_normal_(config.get<std::string>("distribution") == "normal") {}

bool Quantile::may_have(std::int64_t knots) const {
  return knots >= 2 && knots <= most_;
}

at::Tensor Quantile::mapped(const at::Tensor& values, const at::Tensor& knots) const {
  const std::int64_t last = knots.size(1) - 1;
  const at::Tensor least = knots.narrow(1, 0, 1);
  const at::Tensor largest = knots.narrow(1, last, 1);
  const auto place = [&](const at::Tensor& low, const at::Tensor& high) {
    const at::Tensor begin = knots.gather(1, low);
    return low.add(values.sub(begin).div(knots.gather(1, high).sub(begin)).mul(high.sub(low)));
  };
  // Of equal quantiles the last one at which x is not below, and the first at which it is not
  // above: elsewhere the two are the ends of one interval.
  const at::Tensor right = at::searchsorted(knots, values, false, /*right=*/true).clamp(1, last);
  const at::Tensor left = at::searchsorted(knots, values, false, /*right=*/false).clamp(1, last);
  at::Tensor share =
      place(right.sub(1), right).add(place(left.sub(1), left)).div(2 * static_cast<double>(last));
  // scikit-learn's tolerance at the ends of a normal distribution, and the end it puts there.
  constexpr double kTolerance = 1e-7;
  const double tolerance = is_normal_ ? kTolerance : 0;
  share = at::where(values.add(tolerance).ge(largest), 1.0, share);
  share = at::where(values.sub(tolerance).le(least), 0.0, share);
  if (is_normal_) {
    // The number that has 1e-7 below it, less an epsilon of float64.
    constexpr double kEnd = 5.199337582605575;
    share = at::special_ndtri(share).clamp(-kEnd, kEnd);
  }
  return at::where(largest.eq(least).logical_and(at::isnan(values).logical_not()), 0.0, share);
}

QuantileBins::QuantileBins(const Config& config)
    : QuantileMap(config, "quantile_bins", config.get<std::int64_t>("bins") + 1),
      bins_(config.get<std::int64_t>("bins")) {}

/// [columns, bins + 1]: the distinct ones in front; the last again and again behind them.
at::Tensor QuantileBins::knots_of(const at::Tensor& quantiles) const {
  const std::int64_t count = quantiles.size(1);
  const at::Tensor is_new =
      at::cat({quantiles.narrow(1, 0, 1).eq(quantiles.narrow(1, 0, 1)),
               quantiles.narrow(1, 1, count - 1).gt(quantiles.narrow(1, 0, count - 1))},
              1);
  const at::Tensor place = is_new.cumsum(1).sub(1);
  const at::Tensor edges = quantiles.narrow(1, count - 1, 1).repeat({1, bins_ + 1});
  return edges.scatter(1, place, quantiles);
}

bool QuantileBins::may_have(std::int64_t knots) const {
  return knots == bins_ + 1;
}

at::Tensor QuantileBins::mapped(const at::Tensor& values, const at::Tensor& knots) const {
  const at::Tensor bins =
      knots.narrow(1, 1, bins_).gt(knots.narrow(1, 0, bins_)).sum(1, /*keepdim=*/true);
  const at::Tensor edge = edge_before(values, knots, bins.sub(1));
  const at::Tensor begin = knots.gather(1, edge);
  const at::Tensor width = knots.gather(1, edge.add(1)).sub(begin);
  const at::Tensor place = edge.add(values.sub(begin).div(width));
  const at::Tensor ended =
      at::where(bins.lt(bins_), at::minimum(place, bins.to(at::kDouble)), place);
  return at::where(bins.eq(0).logical_and(at::isnan(values).logical_not()), 0.0, ended);
}

}  // namespace treadle::transforms
