#include "lines.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <treadle/base/error.h>

namespace treadle::transforms {

void expect_groups(const at::Tensor& groups, const std::string& component) {
  if (groups.defined())
    return;
  throw DataError(component +
                  ": \"by\": \"group\" needs rows with groups, and these have none; name their "
                  "column or array in the data, \"group\" of csv or \"groups\" of npy");
}

at::Tensor GroupPlaces::of(const at::Tensor& groups, const std::string& component) const {
  if (!by_group_)
    return {};
  expect_groups(groups, component);
  const at::Tensor numbers = groups.contiguous();
  const auto* const number = numbers.data_ptr<std::int64_t>();
  at::Tensor places = at::empty_like(numbers);
  auto* const place = places.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < numbers.numel(); ++row) {
    if (row > 0 && number[row] == number[row - 1]) {
      place[row] = place[row - 1];
      continue;
    }
    const auto found = std::lower_bound(groups_.begin(), groups_.end(), number[row]);
    const bool is_known = found != groups_.end() && *found == number[row];
    if (!is_known && !has_overall_) {
      throw DataError(component + ": no training row is of the group with the number " +
                      std::to_string(number[row]) +
                      ", so it has no statistics; leave its rows out, or set \"handle_unknown\": "
                      "\"overall\"");
    }
    place[row] = is_known ? found - groups_.begin() : static_cast<std::int64_t>(groups_.size());
  }
  return places;
}

Lines::Lines(std::span<const Line> lines, const GroupPlaces& places, Dimension dimension) {
  const auto count = static_cast<std::int64_t>(lines.size());
  at::Tensor shifts = at::empty({count}, at::kDouble);
  at::Tensor scales = at::empty({count}, at::kDouble);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    shifts.data_ptr<double>()[i] = lines[i].shift;
    scales.data_ptr<double>()[i] = lines[i].scale;
  }
  if (places.is_by_group()) {
    const auto rows = static_cast<std::int64_t>(places.size());
    shifts = shifts.view({rows, count / rows});
    scales = scales.view({rows, count / rows});
  }
  *this = Lines(shifts, scales, places, dimension);
}

Lines::Lines(const at::Tensor& shift, const at::Tensor& scale, const GroupPlaces& places,
             Dimension dimension)
    : shift_(shift), scale_(scale), dimension_(dimension) {
  if (shift.scalar_type() != at::kDouble || scale.scalar_type() != at::kDouble ||
      !shift.sizes().equals(scale.sizes()) || shift.dim() != (places.is_by_group() ? 2 : 1) ||
      (places.is_by_group() && shift.size(0) != static_cast<std::int64_t>(places.size()))) {
    throw StorageError("saved shift and scale must be two float64 " +
                       std::string(places.is_by_group() ? "matrices with a row for each group"
                                                        : "vectors of one size"));
  }
}

at::Tensor Lines::of_rows(const DeviceConstant& constant, const at::Tensor& values,
                          const at::Tensor& places) const {
  at::Tensor lines = constant.with(values.options());
  const std::int64_t count = lines.size(-1);
  const std::int64_t dimension = dimension_ == Dimension::kFirst ? 1 : -1;
  TREADLE_EXPECTS(values.dim() >= 2 && (count == 1 || values.size(dimension) == count),
                  "the batch has other columns than the data this transform was fitted on");
  // Against [B, first, …, last]: the first dimension of a row has the others behind it.
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(values.dim()), 1);
  if (places.defined()) {
    lines = lines.index_select(0, places);
    sizes.front() = lines.size(0);
  }
  (dimension_ == Dimension::kFirst ? sizes[1] : sizes.back()) = count;
  return lines.view(sizes);
}

void Lines::apply(at::Tensor& values, const at::Tensor& places) const {
  values.sub_(of_rows(shift_, values, places)).mul_(of_rows(scale_, values, places));
}

at::Tensor Lines::inverted(const at::Tensor& values, const at::Tensor& places) const {
  return values.div(of_rows(scale_, values, places)).add(of_rows(shift_, values, places));
}

}  // namespace treadle::transforms
