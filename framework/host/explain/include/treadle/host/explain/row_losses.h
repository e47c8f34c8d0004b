#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/target_spec.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::explain {

/// "log_loss" of classes, labels and distributions, "squared_error" of numbers.
std::string_view loss_name(const TargetSpec& target);

/// The loss of each row, computed from what the model predicts in the end, output stages included:
/// float64 [B], NaN where all of a row's positions have weight 0.
///
///     classes:       -log p(actual)
///     labels:        mean over labels of -t log p - (1 - t) log(1 - p)
///     distribution:  -sum t log p
///     numbers:       mean over the width of (predicted - actual)^2, in the data's units
///
/// Probabilities are kept in [1e-15, 1 - 1e-15]. Of several positions the mean, by their weights.
at::Tensor row_losses(const Prediction& prediction, const Batch& rows, std::size_t target,
                      const TargetSpec& spec);

/// The places of the `count` largest values, largest first; the first of equals, and none that is
/// NaN: int64 [<= count].
at::Tensor largest(const at::Tensor& values, std::int64_t count);

/// The confidence of wrong decisions: the probability of the decided
/// class, float64 [B]; NaN where it is right. Undefined for anything but one class a row.
at::Tensor wrong_confidence(const Prediction& prediction, const at::Tensor& actual,
                            const TargetSpec& spec);

/// How little the model commits itself: of one class a row 1 - (p1 - p2) of the two likeliest;
/// of one number a row with quantiles the distance between the lowest and the highest. float64 [B].
/// Undefined for anything else.
at::Tensor doubts(const Prediction& prediction, const TargetSpec& spec);

/// Rows by their loss: rows with a loss in [from, to), the last bucket with `to`.
struct LossBucket {
  double from = 0;
  double to = 0;
  std::vector<std::int64_t> places;  ///< of rows, ascending
};
/// At the quantiles 0, 50, 75, 90, 95, 99 and 100 %. Rows of NaN are in none.
std::vector<LossBucket> loss_buckets(const at::Tensor& losses);

}  // namespace treadle::explain
