#include <treadle/host/explain/partial_dependence.h>

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

namespace treadle::explain {
namespace {

constexpr double kLowestQuantile = 0.05;
constexpr double kHighestQuantile = 0.95;

}  // namespace

at::Tensor grid_of(const ExplainedRows& rows, const ExplainedColumn& column, std::int64_t points) {
  const at::Tensor all = rows.values_of(column);
  const at::Tensor sorted = std::get<0>(all.masked_select(at::isfinite(all)).sort());
  const auto [values, inverse, counts] =
      at::_unique2(sorted, /*sorted=*/true, /*return_inverse=*/false, /*return_counts=*/true);
  if (values.size(0) <= points)
    return values;
  if (column.is_category) {
    const at::Tensor frequent =
        std::get<1>(counts.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true))
            .narrow(0, 0, points);
    return std::get<0>(values.index_select(0, frequent).sort());
  }
  const at::Tensor places = (at::linspace(kLowestQuantile, kHighestQuantile, points, at::kDouble) *
                             static_cast<double>(sorted.size(0) - 1))
                                .round()
                                .to(at::kLong);
  return std::get<0>(at::_unique2(sorted.index_select(0, places)));
}

PartialDependence partial_dependence(const ExplainedRows& rows, std::size_t column,
                                     const at::Tensor& grid) {
  const ExplainedColumn& changed_column = rows.columns[column];
  TREADLE_EXPECTS(changed_column.is_flat, "a column with one value per row");
  const Place place = changed_column.places.front();
  const std::int64_t points = grid.size(0);
  PartialDependence result{column, grid, {}};
  std::vector<std::vector<at::Tensor>> sums(rows.targets.size());  // by point: [K]
  for (std::vector<at::Tensor>& of_target : sums)
    of_target.resize(static_cast<std::size_t>(points));
  for (const ExplainedPart& part : rows.parts) {
    const std::int64_t count = part.rows.size();
    const std::int64_t together = std::max<std::int64_t>(rows_at_once(part.rows) / count, 1);
    for (std::int64_t begin = 0; begin < points; begin += together) {
      const std::int64_t end = std::min(begin + together, points);
      Batch changed = repeated(part.rows, end - begin);
      changed.inputs[place.input]
          .select(-1, place.index)
          .copy_(grid.narrow(0, begin, end - begin).repeat_interleave(count));
      const Predictions predictions = part.predict(changed);
      for (std::size_t target = 0; target < sums.size(); ++target) {
        const at::Tensor outputs = explained_outputs(predictions[target], rows.targets[target]);
        const at::Tensor of_points = outputs.reshape({end - begin, count, outputs.size(1)}).sum(1);
        for (std::int64_t point = begin; point < end; ++point) {
          at::Tensor& sum = sums[target][static_cast<std::size_t>(point)];
          sum = sum.defined() ? sum + of_points[point - begin] : of_points[point - begin];
        }
      }
    }
  }
  for (const std::vector<at::Tensor>& of_target : sums) {
    result.outputs.push_back(at::stack(of_target) / static_cast<double>(rows.rows()));
  }
  return result;
}

}  // namespace treadle::explain
