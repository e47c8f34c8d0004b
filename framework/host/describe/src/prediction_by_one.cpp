#include "prediction_by_one.h"

#include <limits>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/random.h>

namespace treadle::describe::internal {
namespace {

constexpr std::uint64_t kSeedOfHalves = 0;

std::pair<at::Tensor, at::Tensor> halves_of(std::int64_t rows) {
  const at::Tensor order =
      at::tensor(random_permutation(rows, RandomBits(kSeedOfHalves)), at::kLong);
  return {order.narrow(0, 0, rows / 2), order.narrow(0, rows / 2, rows - rows / 2)};
}

/// `predict`(the half that is known, the half to predict), in turn.
template <typename Predict>
at::Tensor in_turn(const at::Tensor& targets, Predict predict) {
  const auto halves = halves_of(targets.size(0));
  at::Tensor means = at::full_like(targets, std::numeric_limits<double>::quiet_NaN());
  means.index_copy_(0, halves.second, predict(halves.first, halves.second));
  means.index_copy_(0, halves.first, predict(halves.second, halves.first));
  return means;
}

/// Some rows in the order of their values.
class InOrder {
 public:
  InOrder(const at::Tensor& values, const at::Tensor& targets, const at::Tensor& rows) {
    const at::Tensor order = rows.index_select(0, at::argsort(values.index_select(0, rows)));
    values_ = values.index_select(0, order);
    sums_ = at::cat(
        {at::zeros({1, targets.size(1)}, at::kDouble), targets.index_select(0, order).cumsum(0)});
  }

  const at::Tensor& values() const { return values_; }

  /// Of the rows with each of these values, which there are: [n, T].
  at::Tensor means_at(const at::Tensor& wanted) const {
    const at::Tensor begin = at::searchsorted(values_, wanted);
    const at::Tensor end = at::searchsorted(values_, wanted, /*out_int32=*/false, /*right=*/true);
    return (sums_.index_select(0, end) - sums_.index_select(0, begin)) /
           (end - begin).to(at::kDouble).unsqueeze(1);
  }

 private:
  at::Tensor values_;  // float64 [n], ascending
  at::Tensor sums_;    // [n + 1, T]: of the targets before each
};

}  // namespace

at::Tensor means_by_code(const at::Tensor& codes, const at::Tensor& targets) {
  const std::int64_t count = codes.max().item<std::int64_t>() + 1;
  return in_turn(targets, [&](const at::Tensor& known, const at::Tensor& asked) {
    const at::Tensor of_known = codes.index_select(0, known);
    const at::Tensor sums = at::zeros({count, targets.size(1)}, at::kDouble)
                                .index_add_(0, of_known, targets.index_select(0, known));
    const at::Tensor rows = at::bincount(of_known, {}, count).to(at::kDouble).unsqueeze(1);
    return (sums / rows).index_select(0, codes.index_select(0, asked));  // 0 / 0: NaN
  });
}

at::Tensor means_of_nearest(const at::Tensor& values, const at::Tensor& targets) {
  return in_turn(targets, [&](const at::Tensor& known, const at::Tensor& asked) {
    const InOrder rows(values, targets, known);
    const at::Tensor wanted = values.index_select(0, asked);
    const at::Tensor above = at::searchsorted(rows.values(), wanted);
    const std::int64_t last = rows.values().size(0) - 1;
    const at::Tensor left = rows.values().index_select(0, (above - 1).clamp_min(0));
    const at::Tensor right = rows.values().index_select(0, above.clamp_max(last));
    const at::Tensor nearest =
        at::where((wanted - left).abs().lt((right - wanted).abs()), left, right);
    return rows.means_at(nearest);
  });
}

double balanced_accuracy(const at::Tensor& classes, const at::Tensor& means, std::int64_t fewest) {
  const at::Tensor has = at::isnan(means.select(1, 0)).logical_not();
  const at::Tensor right = at::argmax(means, 1).eq(classes).logical_and(has);
  const at::Tensor rows = at::bincount(classes).to(at::kDouble);
  const at::Tensor hits = at::bincount(classes.masked_select(right), {}, rows.size(0));
  return (hits / rows).masked_select(rows.ge(static_cast<double>(fewest))).mean().item<double>();
}

double r_squared(const at::Tensor& targets, const at::Tensor& means) {
  const at::Tensor mean = targets.mean();
  const at::Tensor predicted = at::where(at::isnan(means), mean, means);
  return 1 - (targets - predicted).square().sum().item<double>() /
                 (targets - mean).square().sum().item<double>();
}

}  // namespace treadle::describe::internal
