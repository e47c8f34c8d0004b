#include "residuals.h"

#include <cmath>
#include <limits>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

namespace treadle::metrics {
namespace {

Histogram histogram_of(const std::vector<double>& values) {
  Histogram histogram;
  histogram.add(at::tensor(values, at::kDouble), {});
  return histogram;
}

at::Tensor tensor_of(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble);
}

TEST(Histogram, CountsEachValueInItsBin) {
  // A range of 7 needs 28 bins of 1/4, but 56 of 1/8.
  const at::Tensor table = histogram_of({-3, -3, -2.9, 0.1, 4}).table();

  ASSERT_EQ(table.size(0), 29);
  EXPECT_EQ(table[0][0].item<double>(), -3);
  EXPECT_EQ(table[0][1].item<double>(), -2.75);
  EXPECT_EQ(table[0][2].item<double>(), 3);
  EXPECT_EQ(table[12][0].item<double>(), 0);
  EXPECT_EQ(table[12][2].item<double>(), 1);
  EXPECT_EQ(table[28][0].item<double>(), 4);
  EXPECT_EQ(table[28][2].item<double>(), 1);
  EXPECT_EQ(table.select(1, 2).sum().item<double>(), 5);
}

TEST(Histogram, DoesNotDependOnTheOrderOfItsValues) {
  const TaskRandom random(2);
  // Magnitudes from 1e-6 to 1e6: bins are merged many times on the way up.
  const at::Tensor values =
      at::randn({400}, at::kDouble).mul(at::arange(400).to(at::kDouble).mul(0.07).sub(14).exp());
  Histogram up;
  Histogram down;
  Histogram merged;
  Histogram whole;
  whole.add(values, {});
  for (std::int64_t i = 0; i < 400; i += 10)
    up.add(values.slice(0, i, i + 10), {});
  for (std::int64_t i = 390; i >= 0; i -= 10) {
    down.add(values.slice(0, i, i + 10), {});
    Histogram one;
    one.add(values.slice(0, i, i + 10), {});
    merged.merge(one);
  }

  EXPECT_TRUE(at::equal(up.table(), whole.table()));
  EXPECT_TRUE(at::equal(down.table(), whole.table()));
  EXPECT_TRUE(at::equal(merged.table(), whole.table()));
  EXPECT_LE(whole.table().size(0), Histogram::kBins);
  EXPECT_GT(whole.table().size(0), Histogram::kBins / 4);
}

TEST(Histogram, ZerosFitAnyScale) {
  const std::vector<double> tiny{1e-200, 3e-200};
  Histogram zeros_first = histogram_of({0, 0});
  zeros_first.add(tensor_of(tiny), {});
  Histogram zeros_last = histogram_of(tiny);
  zeros_last.add(tensor_of({0, 0}), {});
  Histogram merged = histogram_of(tiny);
  merged.merge(histogram_of({0, 0}));

  EXPECT_TRUE(at::equal(zeros_first.table(), zeros_last.table()));
  EXPECT_TRUE(at::equal(merged.table(), zeros_last.table()));
  EXPECT_EQ(zeros_last.table()[0][2].item<double>(), 2);
}

TEST(Histogram, TakesOneValueAndExtremes) {
  EXPECT_EQ(histogram_of({0}).table().size(0), 1);
  EXPECT_EQ(histogram_of({-7.3, -7.3}).table()[0][2].item<double>(), 2);
  const double largest = std::numeric_limits<double>::max();
  const at::Tensor table = histogram_of({-largest, 0, largest}).table();
  EXPECT_LE(table.size(0), Histogram::kBins);
  EXPECT_EQ(table.select(1, 2).sum().item<double>(), 3);
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  Histogram histogram = histogram_of({1, std::nan(""), infinity, 2});
  EXPECT_EQ(histogram.table().select(1, 2).sum().item<double>(), 2);

  histogram.add(tensor_of({std::nan("")}), {});
  EXPECT_EQ(histogram.table().select(1, 2).sum().item<double>(), 2);
}

TEST(Histogram, CountsWeights) {
  Histogram histogram;
  histogram.add(tensor_of({1, 2}), tensor_of({0.5, 4}));

  EXPECT_EQ(histogram.table().select(1, 2).sum().item<double>(), 4.5);
}

Batch batch_of(const at::Tensor& rows, const at::Tensor& targets) {
  Batch batch;
  batch.targets = batch.original_targets = {targets};
  batch.rows = rows;
  return batch;
}

TargetSpec price() {
  return number_target("price");
}

void update(Residuals& metric, const at::Tensor& values, const Batch& batch) {
  metric.update({TargetKind::kNumbers, values}, TargetBatch::original(batch, 0, price()));
}

TEST(Residuals, ShowsEveryRowOfASmallSet) {
  Residuals metric{Config()};
  metric.start(price());
  update(metric, tensor_of({10, 20, 30}).view({3, 1}),
         batch_of(at::tensor(std::vector<std::int64_t>{7, 2, 5}),
                  tensor_of({11, 22, 33}).view({3, 1})));

  const auto result = metric.compute();

  EXPECT_TRUE(result.values.empty());
  ASSERT_EQ(result.tables.size(), 2u);
  EXPECT_EQ(result.tables[0].name, "residual_sample");
  EXPECT_EQ(result.tables[0].column_labels, (std::vector<std::string>{"actual", "predicted"}));
  // In the order of their rows in the data: 2, 5, 7.
  EXPECT_TRUE(at::equal(result.tables[0].values, tensor_of({22, 20, 33, 30, 11, 10}).view({3, 2})));
  EXPECT_EQ(result.tables[1].name, "residual_histogram");
  EXPECT_EQ(result.tables[1].column_labels, (std::vector<std::string>{"from", "to", "count"}));
  EXPECT_EQ(result.tables[1].values[0][0].item<double>(), 1);  // the smallest residual, 11 - 10
}

TEST(Residuals, SamplesTheSameRowsHoweverTheyAreDealt) {
  constexpr std::int64_t kRows = 5000;
  const at::Tensor rows = at::arange(kRows);
  const at::Tensor targets = rows.to(at::kDouble).view({kRows, 1});
  Residuals whole{Config()};
  whole.start(price());
  update(whole, targets, batch_of(rows, targets));
  Residuals odd{Config()};
  Residuals even{Config()};
  odd.start(price());
  even.start(price());
  for (std::int64_t i = 0; i < kRows; i += 100) {
    const at::Tensor some = targets.slice(0, i, i + 100);
    update((i / 100) % 2 == 1 ? odd : even, some, batch_of(rows.slice(0, i, i + 100), some));
  }

  odd.merge(even);

  const at::Tensor sample = whole.compute().tables[0].values;
  EXPECT_TRUE(at::equal(odd.compute().tables[0].values, sample));
  ASSERT_EQ(sample.size(0), static_cast<std::int64_t>(Residuals::kSample));
  // Spread over the data: each quarter gives about a quarter of the sample.
  for (std::int64_t quarter = 0; quarter < 4; ++quarter) {
    const at::Tensor actual = sample.select(1, 0);
    const auto inside =
        actual.ge(quarter * kRows / 4).logical_and(actual.lt((quarter + 1) * kRows / 4));
    EXPECT_NEAR(inside.sum().item<double>(), 125, 40);
  }
}

}  // namespace
}  // namespace treadle::metrics
