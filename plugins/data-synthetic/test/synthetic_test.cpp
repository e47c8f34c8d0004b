#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

DataCase data_case(std::string name, const char* component,
                   const Json& parameters = Json::object()) {
  return {std::move(name), [=] { return plugin().make<DataProvider>(component, parameters); }};
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, DataContract,
    ::testing::Values(data_case("Moons", "moons"), data_case("MoonsOdd", "moons", {{"rows", 7}}),
                      data_case("Spirals", "spirals", {{"classes", 5}, {"turns", 2}}),
                      data_case("Friedman", "friedman1", {{"features", 5}, {"seed", 3}}),
                      data_case("Sea", "sea", {{"concept_rows", 30}}),
                      data_case("Series", "ar_series")),
    CaseName());

StreamCase stream_case(std::string name, const char* component) {
  return {std::move(name), [=] {
            return plugin().make<DataProvider>(component, {{"rows", "endless"}, {"seed", 4}});
          }};
}

INSTANTIATE_TEST_SUITE_P(Synthetic, StreamContract,
                         ::testing::Values(stream_case("Moons", "moons"),
                                           stream_case("Spirals", "spirals"),
                                           stream_case("Friedman", "friedman1")),
                         CaseName());

class SyntheticTest : public ::testing::Test {
 protected:
  static std::unique_ptr<DataProvider> open(const char* component, const Json& parameters,
                                            std::uint64_t seed = 1, Task task = Task::kAuto) {
    auto data = plugin().make<DataProvider>(component, parameters);
    OpenRequest request;
    request.seed = seed;
    request.task = task;
    data->open(request);
    return data;
  }
  static const RowReader& reader(const DataProvider& data) { return *data.ask<RowReader>(); }
  static at::Tensor features(const DataProvider& data) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(reader(data).rows()));
    std::iota(rows.begin(), rows.end(), 0);
    Batch batch;
    reader(data).gather(rows, batch);
    return batch.inputs[0];
  }
  template <typename Action>
  static std::string message_of(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(SyntheticTest, AnotherSeedGivesOtherRowsUnlessOneIsGiven) {
  for (const char* name : {"moons", "spirals", "friedman1", "ar_series"}) {
    const std::string hash = open(name, {}, 1)->content_hash();
    const std::string fixed = open(name, {{"seed", 5}}, 1)->content_hash();

    EXPECT_EQ(open(name, {}, 1)->content_hash(), hash) << name;
    EXPECT_NE(open(name, {}, 2)->content_hash(), hash) << name;
    EXPECT_EQ(open(name, {{"seed", 5}}, 2)->content_hash(), fixed) << name;
  }
}

TEST_F(SyntheticTest, MoonsWithoutNoiseLieOnTwoHalfCircles) {
  const auto data = open("moons", {{"rows", 101}, {"noise", 0}});
  const at::Tensor points = features(*data);
  const at::Tensor targets = reader(*data).targets();

  EXPECT_EQ(targets.sum().item<std::int64_t>(), 50);
  for (std::int64_t row = 0; row < 101; ++row) {
    const bool lower = targets[row].item<std::int64_t>() == 1;
    const double x = points[row][0].item<double>() - (lower ? 1 : 0);
    const double y = points[row][1].item<double>() - (lower ? 0.5 : 0);
    EXPECT_NEAR(std::hypot(x, y), 1, 1e-12);
    EXPECT_GE(lower ? -y : y, -1e-12);
  }
  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("0", "1"));
}

TEST_F(SyntheticTest, SpiralsWithoutNoiseAreOneArmTurnedForEachClass) {
  const auto data = open("spirals", {{"rows", 120}, {"classes", 4}, {"turns", 1.5}, {"noise", 0}});
  const at::Tensor points = features(*data);
  const at::Tensor targets = reader(*data).targets();

  for (std::int64_t row = 0; row < 120; ++row) {
    const double x = points[row][0].item<double>();
    const double y = points[row][1].item<double>();
    const double radius = std::hypot(x, y);
    const double arm = static_cast<double>(targets[row].item<std::int64_t>());
    const double angle = 2 * std::numbers::pi * (1.5 * radius + arm / 4);
    EXPECT_NEAR(radius, (static_cast<double>(row) + 1) / 120, 1e-12);
    EXPECT_NEAR(x, radius * std::cos(angle), 1e-9);
    EXPECT_NEAR(y, radius * std::sin(angle), 1e-9);
  }
}

TEST_F(SyntheticTest, FriedmanIsItsFormulaPlusNoise) {
  const auto exact = open("friedman1", {{"rows", 500}, {"noise", 0}, {"features", 7}});
  const at::Tensor x = features(*exact);
  const auto column = [&](std::int64_t c) { return x.select(1, c); };

  const at::Tensor formula = column(0).mul(column(1)).mul(std::numbers::pi).sin().mul(10) +
                             column(2).sub(0.5).square().mul(20) + column(3).mul(10) +
                             column(4).mul(5);

  EXPECT_TRUE(reader(*exact).targets(0).squeeze(1).allclose(formula, 1e-12));
  EXPECT_EQ(x.size(1), 7);
  EXPECT_GE(x.min().item<double>(), 0);
  EXPECT_LT(x.max().item<double>(), 1);
  // Uniform: mean 1/2, standard deviation sqrt(1/12); five standard errors of 3500 numbers.
  EXPECT_NEAR(x.mean().item<double>(), 0.5, 5 * std::sqrt(1 / 12.) / std::sqrt(3500));
}

TEST_F(SyntheticTest, FriedmanNoiseHasTheDeviationAskedFor) {
  const at::Tensor x = features(*open("friedman1", {{"rows", 20000}, {"noise", 2}}));
  const auto noisy = open("friedman1", {{"rows", 20000}, {"noise", 2}});
  const auto column = [&](std::int64_t c) { return x.select(1, c); };

  const at::Tensor noise =
      reader(*noisy).targets(0).squeeze(1) -
      (column(0).mul(column(1)).mul(std::numbers::pi).sin().mul(10) +
       column(2).sub(0.5).square().mul(20) + column(3).mul(10) + column(4).mul(5));

  EXPECT_NEAR(noise.std().item<double>(), 2, 5 * 2 / std::sqrt(2 * 20000.));
  EXPECT_NEAR(noise.mean().item<double>(), 0, 5 * 2 / std::sqrt(20000.));
}

TEST_F(SyntheticTest, SeriesRowsAreTheLastValuesAndTheNext) {
  const auto data =
      open("ar_series", {{"coefficients", {0.5, -0.2}}, {"length", 50}, {"window", 4}});
  const at::Tensor rows = features(*data);
  const at::Tensor next = reader(*data).targets(0).squeeze(1);

  ASSERT_EQ(rows.size(0), 46);
  EXPECT_EQ(data->spec().inputs[0].columns[0].name, "lag_1");
  for (std::int64_t t = 1; t < 46; ++t) {
    EXPECT_EQ(rows[t][0].item<double>(), next[t - 1].item<double>());
    EXPECT_EQ(rows[t][3].item<double>(), rows[t - 1][2].item<double>());
  }
  EXPECT_EQ(reader(*data).timestamps()[0].item<double>(), 4);
  EXPECT_EQ(reader(*data).timestamps()[45].item<double>(), 49);
}

TEST_F(SyntheticTest, SeriesFollowsItsCoefficients) {
  const auto data =
      open("ar_series", {{"coefficients", {0.5, -0.2}}, {"length", 20002}, {"noise", 3}});
  const at::Tensor rows = features(*data);

  const at::Tensor noise =
      reader(*data).targets(0).squeeze(1) - rows.select(1, 0).mul(0.5) + rows.select(1, 1).mul(0.2);

  EXPECT_NEAR(noise.std().item<double>(), 3, 5 * 3 / std::sqrt(2 * 20000.));
  // The noise has nothing to do with what went before: correlation 0, five standard errors.
  const double correlation = (noise * rows.select(1, 0)).mean().item<double>() /
                             (3 * rows.select(1, 0).std().item<double>());
  EXPECT_NEAR(correlation, 0, 5 / std::sqrt(20000.));
}

// The first rows of a stream validate, a chunk's worth or less: no end of the shape may be missing.
TEST_F(SyntheticTest, TheFirstRowsOfAnEndlessStreamAreOfTheWholeShape) {
  const auto first_rows = [](const char* component) {
    const auto data = open(component, {{"rows", "endless"}, {"noise", 0}});
    Batch batch;
    EXPECT_TRUE(data->stream(200)->next(batch));
    return batch;
  };

  const Batch moons = first_rows("moons");
  for (const std::int64_t moon : {0, 1}) {
    const at::Tensor x = moons.inputs[0].index({moons.targets[0].flatten() == moon}).select(1, 0);
    EXPECT_LT(x.min().item<double>(), moon - 0.9);
    EXPECT_GT(x.max().item<double>(), moon + 0.9);
  }
  const at::Tensor radius = first_rows("spirals").inputs[0].norm(2, {1});
  EXPECT_LT(radius.min().item<double>(), 0.1);
  EXPECT_GT(radius.max().item<double>(), 0.9);
}

TEST_F(SyntheticTest, NoChunkOfAnEndlessStreamIsACopyOfAnother) {
  for (const char* component : {"moons", "spirals", "friedman1"}) {
    const auto data = open(component, {{"rows", "endless"}, {"noise", 0}});
    const auto stream = data->stream(1);
    std::set<std::pair<float, float>> seen;
    Batch batch;
    for (int row = 0; row < 5000; ++row) {
      ASSERT_TRUE(stream->next(batch));
      const at::Tensor x = batch.inputs[0].to(at::kFloat);
      seen.emplace(x[0][0].item<float>(), x[0][1].item<float>());
    }
    EXPECT_GT(seen.size(), 4900U) << component;
  }
}

TEST_F(SyntheticTest, SeaChangesItsThresholdFromConceptToConcept) {
  const auto data = open("sea", {{"concept_rows", 50}, {"label_noise", 0}});
  const at::Tensor x = features(*data);
  const at::Tensor targets = reader(*data).targets();
  const at::Tensor groups = reader(*data).groups();

  ASSERT_EQ(x.size(0), 200);
  const double thresholds[]{8, 9, 7, 9.5};
  for (std::int64_t row = 0; row < 200; ++row) {
    EXPECT_EQ(groups[row].item<std::int64_t>(), row / 50);
    const double sum = x[row][0].item<double>() + x[row][1].item<double>();
    EXPECT_EQ(targets[row].item<std::int64_t>(), sum <= thresholds[row / 50] ? 1 : 0);
  }
}

TEST_F(SyntheticTest, RefusesWhatItCannotMake) {
  EXPECT_EQ(message_of([] { open("moons", {}, 1, Task::kRegression); }),
            "moons makes classes, but the task is \"regression\"; friedman1 and ar_series make "
            "numbers");
  EXPECT_EQ(message_of([] { open("friedman1", {}, 1, Task::kClassification); }),
            "friedman1 makes numbers, but the task is \"classification\"; moons and spirals make "
            "classes");
  EXPECT_EQ(message_of([] {
              open("ar_series", {{"coefficients", {1.2}}});
            }),
            "ar_series: the series grows without end with these coefficients; take smaller ones");
  EXPECT_EQ(message_of([] {
              open("ar_series", {{"length", 5}, {"window", 4}});
            }),
            "/length: must be at least 6, the window and two rows, got 5");
  EXPECT_EQ(message_of([] {
              open("spirals", {{"rows", 3}, {"classes", 4}});
            }),
            "/rows: must be at least the number of classes, 4");
}

}  // namespace
}  // namespace treadle::testing
