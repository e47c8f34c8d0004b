#include <treadle/host/explain/shap_values.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

// One chain per row x, background row b and order of the columns: the predictions f(b), then with
// the first column of x in place of b's, with the first two, … f(x). Chains of all orders are
// batches of where(is x's, x, b), by index arithmetic.

namespace treadle::explain {
namespace {

constexpr std::int64_t kDirections = 2;
/// Fewer rows are explained before the background has fewer than these.
constexpr std::int64_t kFewBackgroundRows = 10;

/// `count` of 0 … rows-1, ascending: int64.
at::Tensor drawn(std::int64_t rows, std::int64_t count, RandomBits bits) {
  std::vector<std::int64_t> chosen = random_permutation(rows, bits);
  chosen.resize(static_cast<std::size_t>(std::min(rows, count)));
  std::sort(chosen.begin(), chosen.end());
  return at::tensor(chosen, at::kLong);
}

Batch rows_of(const Batch& batch, const at::Tensor& places) {
  Batch chosen;
  for (const at::Tensor& input : batch.inputs)
    chosen.inputs.push_back(input.index_select(0, places));
  chosen.rows = batch.rows.index_select(0, places);
  if (batch.groups.defined())
    chosen.groups = batch.groups.index_select(0, places);
  return chosen;
}

/// Rows and background of one part.
class Chains {
 public:
  Chains(const ExplainedRows& all, const ExplainedPart& part, Batch rows, Batch background,
         const RandomStreams& random)
      : all_(all),
        part_(part),
        rows_(std::move(rows)),
        background_(std::move(background)),
        columns_(static_cast<std::int64_t>(all.columns.size())) {
    find_orders(random);
    find_elements();
  }

  /// By target: [R, K], [R, K], [R, D, K].
  std::vector<ShapValues::Target> values() const {
    const Predictions of_rows = part_.predict(rows_);
    const Predictions of_background = part_.predict(background_);
    std::vector<std::vector<at::Tensor>> contributions(all_.targets.size());
    std::vector<ShapValues::Target> result(all_.targets.size());
    std::vector<at::Tensor> first;
    for (std::size_t t = 0; t < all_.targets.size(); ++t) {
      result[t].predicted = outputs(of_rows, t);
      first.push_back(outputs(of_background, t));
      result[t].base = first[t].mean(0, /*keepdim=*/true).expand_as(result[t].predicted);
    }
    for (std::int64_t row = 0; row < rows_.size(); ++row) {
      const std::vector<at::Tensor> between = between_ends(row);
      for (std::size_t t = 0; t < all_.targets.size(); ++t)
        contributions[t].push_back(
            contributions_of(first[t], between[t], result[t].predicted[row]));
    }
    for (std::size_t t = 0; t < all_.targets.size(); ++t)
      result[t].values = at::stack(contributions[t]);
    return result;
  }

 private:
  at::Tensor outputs(const Predictions& predictions, std::size_t target) const {
    return explained_outputs(predictions[target], all_.targets[target]);
  }

  std::int64_t backgrounds() const { return background_.size(); }

  void find_orders(const RandomStreams& random) {
    std::vector<at::Tensor> orders;
    for (std::int64_t b = 0; b < backgrounds(); ++b) {
      const at::Tensor order = at::tensor(
          random_permutation(columns_, random.bits("order", {static_cast<std::uint64_t>(b)})),
          at::kLong);
      orders.push_back(order);
      orders.push_back(order.flip(0));
    }
    orders_ = at::stack(orders);                                              // [M * 2, D]
    ranks_ = orders_.argsort(/*dim=*/std::int64_t{1}, /*descending=*/false);  // of each column
  }

  /// The column of each element of the last dimension of an input; whole inputs have one.
  void find_elements() {
    for (const at::Tensor& input : rows_.inputs) {
      const std::int64_t width = input.dim() > 1 ? input.size(-1) : 1;
      element_.push_back(at::zeros({width}, at::kLong));
    }
    for (std::size_t column = 0; column < all_.columns.size(); ++column) {
      for (const Place& place : all_.columns[column].places) {
        at::Tensor of_input = element_[place.input];
        if (place.index == Place::kWhole)
          of_input.fill_(static_cast<std::int64_t>(column));
        else
          of_input[place.index] = static_cast<std::int64_t>(column);
      }
    }
  }

  /// The predictions between the ends of all chains of a row, by target: [M * 2, D - 1, K].
  std::vector<at::Tensor> between_ends(std::int64_t row) const {
    const std::int64_t steps = columns_ - 1;
    const std::int64_t chains = backgrounds() * kDirections;
    std::vector<std::vector<at::Tensor>> parts(all_.targets.size());
    const std::int64_t at_once = rows_at_once(rows_);
    for (std::int64_t begin = 0; begin < chains * steps; begin += at_once) {
      const std::int64_t end = std::min(begin + at_once, chains * steps);
      const at::Tensor place = at::arange(begin, end, at::kLong);
      const at::Tensor chain = place.div(steps, "floor");
      const at::Tensor from = chain.div(kDirections, "floor");
      const at::Tensor known = (place.remainder(steps) + 1).unsqueeze(1);
      const at::Tensor is_rows = ranks_.index_select(0, chain).lt(known);  // [n, D]
      const Predictions predictions = part_.predict(mixed(row, from, is_rows));
      for (std::size_t t = 0; t < parts.size(); ++t)
        parts[t].push_back(outputs(predictions, t));
    }
    std::vector<at::Tensor> result;
    for (const std::vector<at::Tensor>& of_target : parts) {
      result.push_back(of_target.empty() ? at::Tensor()
                                         : at::cat(of_target).reshape({chains, steps, -1}));
    }
    return result;
  }

  /// `row` where it is the row's, else the background row: [n] rows.
  Batch mixed(std::int64_t row, const at::Tensor& from, const at::Tensor& is_rows) const {
    Batch batch;
    for (std::size_t i = 0; i < rows_.inputs.size(); ++i) {
      const at::Tensor own = rows_.inputs[i].narrow(0, row, 1);
      const at::Tensor other = background_.inputs[i].index_select(0, from);
      at::Tensor mask = is_rows.index_select(1, element_[i]);  // [n, width]
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(other.dim()), 1);
      sizes.front() = mask.size(0);
      if (other.dim() > 1)
        sizes.back() = mask.size(1);
      batch.inputs.push_back(at::where(mask.reshape(sizes), own, other));
    }
    batch.rows = rows_.rows.narrow(0, row, 1).expand({from.size(0)}).contiguous();
    if (rows_.groups.defined())
      batch.groups = rows_.groups.narrow(0, row, 1).expand({from.size(0)}).contiguous();
    return batch;
  }

  /// [D, K] of a row: the mean over chains of the differences between neighbours.
  at::Tensor contributions_of(const at::Tensor& first, const at::Tensor& between,
                              const at::Tensor& last) const {
    const std::int64_t chains = backgrounds() * kDirections;
    const std::int64_t width = last.size(0);
    std::vector<at::Tensor> points{first.repeat_interleave(kDirections, 0).unsqueeze(1),
                                   last.reshape({1, 1, width}).expand({chains, 1, width})};
    if (between.defined())
      points.insert(points.begin() + 1, between);
    const at::Tensor chain = at::cat(points, 1);  // [M * 2, D + 1, K]
    const at::Tensor changes = chain.narrow(1, 1, columns_) - chain.narrow(1, 0, columns_);
    // From the places in the orders to columns.
    const at::Tensor by_column =
        changes.gather(1, ranks_.unsqueeze(2).expand({chains, columns_, width}));
    return by_column.mean(0);
  }

  const ExplainedRows& all_;
  const ExplainedPart& part_;
  const Batch rows_;
  const Batch background_;
  const std::int64_t columns_;
  at::Tensor orders_;
  at::Tensor ranks_;
  std::vector<at::Tensor> element_;
};

}  // namespace

ShapValues shap_values(const ExplainedRows& rows, const ShapSettings& settings,
                       const RandomStreams& random) {
  TREADLE_EXPECTS(rows.rows() > 0 && !rows.columns.empty(), "there are rows and columns");
  ShapValues result;
  const std::int64_t per_pair =
      kDirections * static_cast<std::int64_t>(rows.columns.size());  // of row and background row
  const std::int64_t most_pairs = std::max<std::int64_t>(settings.most_predictions / per_pair, 1);
  const std::int64_t explained = std::clamp<std::int64_t>(
      most_pairs / std::min(settings.background_rows, kFewBackgroundRows), 1, settings.rows);
  result.places = drawn(rows.rows(), explained, random.bits("rows"));
  const std::int64_t backgrounds =
      std::clamp<std::int64_t>(most_pairs / result.places.size(0), 1, settings.background_rows);
  std::vector<std::vector<ShapValues::Target>> of_parts;
  std::int64_t begin = 0;
  for (std::size_t p = 0; p < rows.parts.size(); ++p) {
    const ExplainedPart& part = rows.parts[p];
    const std::int64_t count = part.rows.size();
    const at::Tensor inside = result.places.ge(begin).logical_and(result.places.lt(begin + count));
    const at::Tensor own = result.places.masked_select(inside) - begin;
    begin += count;
    if (own.size(0) == 0)
      continue;
    const RandomStreams of_part = random.part("part", p);
    const at::Tensor background = drawn(count, backgrounds, of_part.bits("background"));
    result.background_rows = std::max(result.background_rows, background.size(0));
    const Chains chains(rows, part, rows_of(part.rows, own), rows_of(part.rows, background),
                        of_part);
    of_parts.push_back(chains.values());
  }
  for (std::size_t t = 0; t < rows.targets.size(); ++t) {
    std::vector<at::Tensor> predicted;
    std::vector<at::Tensor> base;
    std::vector<at::Tensor> values;
    for (const std::vector<ShapValues::Target>& of_part : of_parts) {
      predicted.push_back(of_part[t].predicted);
      base.push_back(of_part[t].base);
      values.push_back(of_part[t].values);
    }
    ShapValues::Target target{at::cat(predicted), at::cat(base), at::cat(values), {}};
    target.mean_abs = target.values.abs().mean(0);
    result.targets.push_back(std::move(target));
  }
  return result;
}

}  // namespace treadle::explain
