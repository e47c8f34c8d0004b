#pragma once

#include <ATen/core/Tensor.h>

namespace treadle::describe::internal {

/// Ranks from 1 on, equal values having the mean of theirs: float64 [n]. `values`: [n], no NaN.
at::Tensor average_ranks(const at::Tensor& values);
/// The same for values whose ascending order is known: at::argsort's, int64 [n].
at::Tensor average_ranks_in_order(const at::Tensor& values, const at::Tensor& order);

/// The probability that the value of a row with `is_positive` is the greater one, half of it where
/// they are equal: the area under the ROC curve. bool [n], both kinds at least once.
double area_under_curve(const at::Tensor& ranks, const at::Tensor& is_positive);

/// Pearson's r of two columns without missing values; 0 where one is constant. float64 [n].
double correlation_of(const at::Tensor& first, const at::Tensor& second);

/// The number of different values.
std::int64_t count_distinct(const at::Tensor& values);

}  // namespace treadle::describe::internal
