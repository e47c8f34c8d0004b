// The numbers are those of quantile_reference.py (scikit-learn 1.2, NumPy 1.24).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<std::vector<double>>;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

class QuantilesTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Transform> made(const std::string& component,
                                         const nlohmann::json& parameters) {
    static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    return plugin.make<Transform>(component, parameters);
  }

  static MatrixRows table(const Rows& rows) {
    MatrixRows::Matrices matrices;
    const auto width = static_cast<std::int64_t>(rows.front().size());
    PortSpec port{"features", {width}, {}, Role::kFeatures, at::kDouble};
    for (std::int64_t c = 0; c < width; ++c)
      port.columns.push_back({"c" + std::to_string(c), {}, true});
    std::vector<double> values;
    for (const auto& row : rows)
      values.insert(values.end(), row.begin(), row.end());
    matrices.spec.inputs = {port};
    matrices.inputs = {
        at::tensor(values, at::kDouble).view({static_cast<std::int64_t>(rows.size()), width})};
    return MatrixRows(std::move(matrices));
  }

  /// A wave, a tail, five values with ties of different numbers.
  static MatrixRows training_rows() {
    Rows rows;
    for (int row = 0; row < 40; ++row) {
      rows.push_back({std::sin(1.3 * row), std::exp(3 * std::sin(0.7 * row)),
                      static_cast<double>((row * row % 11) / 2)});
    }
    return table(rows);
  }

  static const Rows& seen() {
    static const Rows rows{{-2.0, 0.01, 0},  {-0.3, 0.5, 1}, {0.0, 1.0, 2},
                           {0.55, 7.5, 2.5}, {1.0, 30.0, 5}, {kMissing, kMissing, kMissing}};
    return rows;
  }

  static std::unique_ptr<Transform> fitted(const std::string& component,
                                           const nlohmann::json& parameters,
                                           const RowReader& reader) {
    auto transform = made(component, parameters);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(reader.rows()));
    std::iota(rows.begin(), rows.end(), 0);
    transform->fit(reader, rows);
    return transform;
  }

  /// Row by row.
  static std::vector<double> result(const Transform& transform, const Rows& rows) {
    const MatrixRows reader = table(rows);
    Batch batch = gathered(reader, 0, reader.rows());
    transform.apply(batch, ApplyContext{});
    const at::Tensor flat = batch.inputs[0].contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }

  static void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
      if (!std::isnan(expected[i])) {
        EXPECT_NEAR(got[i], expected[i], 1e-9) << i;
      }
    }
  }

  /// The components of a piecewise-linear encoding, of a place among `bins` bins.
  static std::vector<double> encoded(double place, int bins) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::vector<double> parts;
    for (int bin = 0; bin < bins; ++bin)
      parts.push_back(
          std::clamp(place - bin, bin == 0 ? -kFar : 0.0, bin == bins - 1 ? kFar : 1.0));
    return parts;
  }
};

TEST_F(QuantilesTest, AUniformDistributionEqualsScikitLearns) {
  const auto few =
      fitted("quantile", {{"distribution", "uniform"}, {"n_quantiles", 9}}, training_rows());
  const auto all = fitted("quantile", {{"distribution", "uniform"}}, training_rows());

  expect_near(result(*few, seen()),
              {0, 0, 0, 0.3923805407336435, 0.3980674259166734, 0.375, 0.4835008708216354,
               0.4715749043069666, 0.625, 0.7147057440849302, 0.7099517555401282, 0.78125, 1, 1, 1,
               kMissing, kMissing, kMissing});
  expect_near(result(*all, seen()),
              {0, 0, 0, 0.3894530565565679, 0.3905593181343271, 0.3717948717948718,
               0.4615384615384615, 0.41025641025641024, 0.6538461538461539, 0.7277731844864295,
               0.6965130885986107, 0.8269230769230769, 1, 1, 1, kMissing, kMissing, kMissing});
}

TEST_F(QuantilesTest, ANormalDistributionEqualsScikitLearns) {
  const auto transform = fitted("quantile", {{"n_quantiles", 9}}, training_rows());

  expect_near(result(*transform, seen()),
              {-5.199337582605575, -5.199337582605575, -5.199337582605575, -0.27311985916305237,
               -0.2583525260565227, -0.31863936396437514, -0.04136898043755994, -0.071311543025251,
               0.31863936396437514, 0.5671849796864905, 0.55324378468628, 0.7764217611479277,
               5.19933758270342, 5.19933758270342, 5.19933758270342, kMissing, kMissing, kMissing});
}

TEST_F(QuantilesTest, BinsGiveThePiecewiseLinearEncoding) {
  const auto transform = fitted("quantile_bins", {{"bins", 6}}, training_rows());

  const std::vector<double> places = result(*transform, seen());

  expect_near(encoded(places[0], 6), {-5.87670048976947, 0, 0, 0, 0, 0});
  expect_near(encoded(places[3], 6), {1, 1, 0.37901965681023964, 0, 0, 0});
  expect_near(encoded(places[12], 6), {1, 1, 1, 1, 1, 1.0098546103467632});
  expect_near(encoded(places[1], 6), {-2.1422348166880747, 0, 0, 0, 0, 0});
  expect_near(encoded(places[10], 6), {1, 1, 1, 1, 0.05719705767767322, 0});
  expect_near(encoded(places[13], 6), {1, 1, 1, 1, 1, 2.4724837512899804});
  EXPECT_TRUE(std::isnan(places[15]));
}

// Four bins of six: the reference pads with zeros as well, but has no end above the last.
TEST_F(QuantilesTest, BinsOfFewValuesEndAtTheLargest) {
  const auto transform = fitted("quantile_bins", {{"bins", 6}}, training_rows());

  const std::vector<double> places = result(*transform, seen());

  expect_near(encoded(places[2], 6), {0, 0, 0, 0, 0, 0});
  expect_near(encoded(places[5], 6), {1, 0, 0, 0, 0, 0});
  expect_near(encoded(places[11], 6), {1, 1, 0.5, 0, 0, 0});
  expect_near(encoded(places[14], 6), {1, 1, 1, 1, 0, 0});
}

TEST_F(QuantilesTest, AConstantColumnBecomesZero) {
  const MatrixRows constant = table({{3.0}, {3.0}, {3.0}});

  for (const char* const component : {"quantile", "quantile_bins"}) {
    const auto transform = fitted(component, nlohmann::json::object(), constant);
    expect_near(result(*transform, {{3.0}, {7.0}, {-1.0}}), {0, 0, 0});
  }
}

TEST_F(QuantilesTest, MissingValuesAreLeftOutOfTheQuantiles) {
  const auto transform = fitted("quantile", {{"distribution", "uniform"}},
                                table({{4.0}, {kMissing}, {0.0}, {2.0}, {kMissing}, {1.0}}));

  expect_near(result(*transform, {{0.5}, {3.0}}), {0.5 / 3, 2.5 / 3});
}

TEST_F(QuantilesTest, AColumnWithoutValuesIsNamed) {
  try {
    fitted("quantile", nlohmann::json::object(), table({{1.0, kMissing}, {2.0, kMissing}}));
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("column \"c1\" has no value in the training rows"));
  }
}

}  // namespace
}  // namespace treadle::testing
