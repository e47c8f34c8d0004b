#include "fold_residuals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>

// Selection in K sorted sequences, prediction k + residual j of fold k. Rounding keeps them sorted,
// so every comparison is one of the very sums. The rest of each sequence is a range; a sum out
// of the longest range splits all of them by binary search, and the side without the wanted place
// goes.

namespace treadle::outputs {
namespace {

/// One sequence: `offset` added to ascending residuals, of which [begin, end) are left.
struct Sequence {
  double offset = 0;
  const double* residuals = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  double at(std::int64_t place) const { return offset + residuals[place]; }
  /// The first place left with a sum of at least `value`, or of more.
  std::int64_t first_not_less(double value) const {
    return std::partition_point(residuals + begin, residuals + end,
                                [&](double residual) { return offset + residual < value; }) -
           residuals;
  }
  std::int64_t first_more(double value) const {
    return std::partition_point(residuals + begin, residuals + end,
                                [&](double residual) { return offset + residual <= value; }) -
           residuals;
  }
};

/// The sum with `before` others before it. Uses the sequences up.
double nth_of(std::vector<Sequence>& sequences, std::int64_t before) {
  for (int step = 0;; ++step) {
    std::int64_t left = 0;
    const Sequence* longest = &sequences.front();
    for (const Sequence& one : sequences) {
      left += one.end - one.begin;
      if (one.end - one.begin > longest->end - longest->begin)
        longest = &one;
    }
    // The place in proportion is near, as folds are much alike; the middle halves what is left
    // where they are not.
    const std::int64_t length = longest->end - longest->begin;
    const std::int64_t ahead =
        step % 3 == 2
            ? length / 2
            : static_cast<std::int64_t>(static_cast<double>(length) *
                                        (static_cast<double>(before) / static_cast<double>(left)));
    const double pivot = longest->at(longest->begin + std::min(ahead, length - 1));
    std::int64_t less = 0;
    for (const Sequence& one : sequences)
      less += one.first_not_less(pivot) - one.begin;
    if (before < less) {
      for (Sequence& one : sequences)
        one.end = one.first_not_less(pivot);
      continue;
    }
    std::int64_t not_more = 0;
    for (const Sequence& one : sequences)
      not_more += one.first_more(pivot) - one.begin;
    if (before < not_more)
      return pivot;
    for (Sequence& one : sequences)
      one.begin = one.first_more(pivot);
    before -= not_more;
  }
}

}  // namespace

FoldResiduals::FoldResiduals(const at::Tensor& residuals, const at::Tensor& folds) {
  const std::int64_t count = folds.max().item<std::int64_t>() + 1;
  std::vector<at::Tensor> of_folds;
  for (std::int64_t fold = 0; fold < count; ++fold) {
    const at::Tensor rows = folds.eq(fold).nonzero().squeeze(1);
    sizes_.push_back(rows.numel());
    of_folds.push_back(std::get<0>(residuals.index_select(0, rows).t().sort(1)));
  }
  sorted_ = at::cat(of_folds, 1).contiguous();
  this->count();
}

void FoldResiduals::count() {
  std::vector<at::Tensor> of_folds;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes_) {
    of_folds.push_back(sorted_.narrow(1, begin, size).isnan().logical_not().sum(1));
    begin += size;
  }
  counts_ = at::stack(of_folds).contiguous();
}

at::Tensor FoldResiduals::nth_sum(const at::Tensor& predictions, const at::Tensor& places) const {
  const std::int64_t rows = predictions.size(1);
  const at::Tensor offsets = predictions.contiguous();
  at::Tensor sums = at::empty({rows, columns()}, at::kDouble);
  const auto* const offset = offsets.data_ptr<double>();
  const auto* const residual = sorted_.data_ptr<double>();
  const auto* const counted = counts_.data_ptr<std::int64_t>();
  const at::Tensor wanted = places.contiguous();
  const auto* const place = wanted.data_ptr<std::int64_t>();
  auto* const to = sums.data_ptr<double>();
  const std::int64_t width = columns();
  const std::int64_t all = sorted_.size(1);
  at::parallel_for(0, rows * width, 64, [&](std::int64_t first, std::int64_t last) {
    std::vector<Sequence> sequences(sizes_.size());
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t column = i % width;
      const double* of_fold = residual + column * all;
      bool is_finite = true;
      for (std::size_t k = 0; k < sequences.size(); ++k) {
        const auto fold = static_cast<std::int64_t>(k);
        sequences[k] = {offset[fold * rows * width + i], of_fold, 0,
                        counted[fold * width + column]};
        is_finite = is_finite && std::isfinite(sequences[k].offset);
        of_fold += sizes_[k];
      }
      to[i] = is_finite ? nth_of(sequences, place[column] - 1)
                        : std::numeric_limits<double>::quiet_NaN();
    }
  });
  return sums;
}

StateDict FoldResiduals::state() const {
  StateDict state;
  if (empty())
    return state;
  state.put("residuals", sorted_);
  state.put("fold_sizes", at::tensor(sizes_, at::kLong));
  return state;
}

FoldResiduals FoldResiduals::from_state(const StateDict& state, std::int64_t columns) {
  FoldResiduals residuals;
  if (!state.has_tensor("residuals"))
    return residuals;
  residuals.sorted_ = state.tensor("residuals").to(at::kDouble).contiguous();
  const at::Tensor sizes = state.tensor("fold_sizes").contiguous();
  if (sizes.scalar_type() == at::kLong && sizes.dim() == 1) {
    const auto* const size = sizes.data_ptr<std::int64_t>();
    residuals.sizes_.assign(size, size + sizes.numel());
  }
  const std::vector<std::int64_t>& all = residuals.sizes_;
  const bool fits =
      residuals.sorted_.dim() == 2 && residuals.columns() == columns && !all.empty() &&
      *std::min_element(all.begin(), all.end()) >= 0 &&
      std::accumulate(all.begin(), all.end(), std::int64_t{0}) == residuals.sorted_.size(1);
  if (!fits)
    throw StorageError(
        "the residuals of \"conformal\" belong to another target, or to other folds");
  residuals.count();
  return residuals;
}

}  // namespace treadle::outputs
