#include <treadle/host/explain/partial_dependence.h>

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include "explained.h"

namespace treadle::explain {
namespace {

TEST(PartialDependence, EqualsScikitLearns) {
  for (const auto& [column, expected] : reference().at("dependence").items()) {
    const PartialDependence found =
        partial_dependence(reference_rows(), std::stoul(column), numbers_of(expected.at("grid")));
    EXPECT_TRUE(at::allclose(found.outputs.front().select(1, 0), numbers_of(expected.at("average")),
                             1e-12, 1e-12))
        << column;
  }
}

TEST(PartialDependence, IsTheMeanOverTheRowsOfAllParts) {
  const at::Tensor x = normal_numbers(10, 2, 1);
  ExplainedRows rows = regression(x, x.select(1, 0), [](const at::Tensor& z) { return z.sum(1); });
  const ExplainedRows whole = rows;
  rows.parts = {part_of(x.narrow(0, 0, 3), x.narrow(0, 0, 3).narrow(1, 0, 1), TargetKind::kNumbers,
                        [](const at::Tensor& z) { return z.sum(1); }),
                part_of(x.narrow(0, 3, 7), x.narrow(0, 3, 7).narrow(1, 0, 1), TargetKind::kNumbers,
                        [](const at::Tensor& z) { return z.sum(1); })};
  const at::Tensor grid = at::arange(4, at::kDouble);
  EXPECT_TRUE(at::allclose(partial_dependence(rows, 1, grid).outputs.front(),
                           partial_dependence(whole, 1, grid).outputs.front()));
}

TEST(GridOf, HasAllOfFewValuesAndQuantilesOfMany) {
  const ExplainedRows rows = reference_rows();
  EXPECT_TRUE(grid_of(rows, rows.columns[3], 5).equal(at::arange(5, at::kDouble)));
  const at::Tensor many = grid_of(rows, rows.columns[0], 7);
  EXPECT_EQ(many.size(0), 7);
  // Observed values: of 60 the 5 % quantile is the fourth, by nearest rank from 0.
  const at::Tensor sorted = std::get<0>(rows.values_of(rows.columns[0]).sort());
  EXPECT_EQ(many[0].item<double>(), sorted[3].item<double>());
  EXPECT_EQ(many[6].item<double>(), sorted[56].item<double>());
}

}  // namespace
}  // namespace treadle::explain
