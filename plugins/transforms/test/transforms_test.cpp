#include <cmath>
#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/testing/data/transform_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

TransformCase transform_case(std::string name, const char* component,
                             const Json& parameters = Json::object()) {
  return {std::move(name), [=] { return plugin().make<Transform>(component, parameters); }};
}

INSTANTIATE_TEST_SUITE_P(
    Transforms, TransformContract,
    ::testing::Values(
        transform_case("Standardize", "standardize"),
        transform_case("StandardizeSome", "standardize", {{"columns", {"b"}}}),
        transform_case("StandardizeTarget", "standardize", {{"target", true}}),
        transform_case("StandardizeOneTarget", "standardize", {{"target", {"steps"}}}),
        transform_case("StandardizeSeries", "standardize",
                       {{"inputs", {"series"}}, {"columns", {"a"}}}),
        TransformCase{"StandardizeImages",
                      [] { return plugin().make<Transform>("standardize", Json::object()); }, false,
                      true},
        TransformCase{"NormalizedImages",
                      [] {
                        return plugin().make<Transform>(
                            "normalize", {{"mean", {0.4, 0.5}}, {"std", 2}, {"max_value", 9}});
                      },
                      false, true},
        transform_case("StandardizeGroups", "standardize", {{"by", "group"}, {"target", true}}),
        transform_case("StandardizeUnknownGroups", "standardize",
                       {{"by", "group"}, {"target", {"price"}}, {"handle_unknown", "overall"}}),
        transform_case("RobustGroups", "robust", {{"by", "group"}, {"target", true}}),
        TransformCase{"MinMaxImagesOfGroups",
                      [] {
                        return plugin().make<Transform>("min_max", {{"by", "group"}});
                      },
                      false, true},
        transform_case("Robust", "robust"),
        transform_case("RobustTarget", "robust", {{"target", true}, {"quantile_range", {5, 90}}}),
        transform_case("MinMax", "min_max"),
        transform_case("MinMaxTarget", "min_max", {{"target", true}, {"range", {-1, 1}}}),
        transform_case("Quantile", "quantile"),
        transform_case("QuantileUniform", "quantile",
                       {{"distribution", "uniform"}, {"n_quantiles", 4}, {"columns", {"b"}}}),
        transform_case("QuantileBins", "quantile_bins", {{"bins", 5}}),
        transform_case("OneHot", "one_hot"),
        transform_case("OneHotSome", "one_hot", {{"columns", {"shape"}}}),
        transform_case("RareCategories", "rare_categories", {{"min_count", 15}}),
        transform_case("RareCategoriesSome", "rare_categories",
                       {{"columns", {"shape"}}, {"max_categories", 1}, {"name", "other"}}),
        transform_case("ImputeMean", "impute"),
        transform_case("ImputeMedian", "impute", {{"strategy", "median"}, {"indicator", true}}),
        transform_case("ImputeMostFrequent", "impute",
                       {{"strategy", "most_frequent"}, {"columns", {"a", "c"}}}),
        transform_case("ImputeConstant", "impute",
                       {{"strategy", "constant"}, {"value", -1}, {"category", "none"}})),
    CaseName());

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Four columns: plain, large with a small spread, constant, with missing values.
const std::vector<double> kValues = {1,  1e6 + 0.25, 0.1, kNan, 2,  1e6 - 0.5, 0.1, 3,
                                     4,  1e6 + 2,    0.1, -1,   8,  1e6 + 1,   0.1, 3,
                                     16, 1e6 - 3.75, 0.1, kNan, -5, 1e6,       0.1, 7.5};

class TransformsTest : public ::testing::Test {
 protected:
  static MatrixRows numbers(std::vector<double> values = kValues, std::int64_t width = 4) {
    MatrixRows::Matrices matrices;
    const auto rows = static_cast<std::int64_t>(values.size()) / width;
    PortSpec port{"features", {width}, {}, Role::kFeatures, at::kDouble};
    for (std::int64_t c = 0; c < width; ++c)
      port.columns.push_back({"c" + std::to_string(c), {}, c == 3});
    matrices.spec.inputs = {port};
    matrices.inputs = {at::tensor(values, at::kDouble).view({rows, width})};
    matrices.spec.targets = {class_target("y", {"A", "B"})};
    matrices.targets = {at::arange(rows).remainder(2)};
    return MatrixRows(std::move(matrices));
  }

  static MatrixRows colors() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"features", {2}, {{"n", {}}, {"m", {}, true}}, Role::kFeatures, at::kDouble},
        {"categories", {1}, {{"color", {"blue", "red"}, true}}, Role::kCategories, at::kLong}};
    matrices.inputs = {at::tensor({5., 0.5, 6., kNan, 7., 2.5, 8., 3.5}, at::kDouble).view({4, 2}),
                       at::tensor({1, -1, 0, 1}, at::kLong).view({4, 1})};
    return MatrixRows(std::move(matrices));
  }

  static Batch applied(const Transform& transform, const RowReader& reader) {
    Batch batch = gathered(reader, 0, reader.rows());
    transform.apply(batch, ApplyContext{});
    return batch;
  }
  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }
  static std::vector<double> result(const Transform& transform, const RowReader& reader,
                                    std::size_t input = 0) {
    return values(applied(transform, reader).inputs[input]);
  }

  static std::unique_ptr<Transform> fitted(const char* component, const Json& parameters,
                                           const RowReader& reader) {
    auto transform = plugin().make<Transform>(component, parameters);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(reader.rows()));
    std::iota(rows.begin(), rows.end(), 0);
    transform->fit(reader, rows);
    return transform;
  }

  static void expect_values(const std::vector<double>& got, const std::vector<double>& expected,
                            double tolerance = 1e-9) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
      if (!std::isnan(expected[i])) {
        EXPECT_NEAR(got[i], expected[i], tolerance) << i;
      }
    }
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

  static std::vector<std::string> names(const DataSpec& spec, std::size_t input = 0) {
    std::vector<std::string> names;
    for (const Column& column : spec.inputs[input].columns)
      names.push_back(column.name);
    return names;
  }
};

// X is kValues as a 6 x 4 array, in what follows.
// sklearn.preprocessing.StandardScaler().fit_transform(X)
TEST_F(TransformsTest, StandardizeEqualsScikitLearn) {
  const MatrixRows reader = numbers();

  expect_values(
      result(*fitted("standardize", {}, reader), reader),
      {-0.512989176042577,    0.23287321639462313,  1.3877787807814457e-17, kNan,
       -0.3590924232298039,   -0.18629857315473694, 1.3877787807814457e-17, -0.04155858174616913,
       -0.051298917604257664, 1.21094072534313,     1.3877787807814457e-17, -1.3714331976235814,
       0.5642880936468349,    0.6520450059439832,   1.3877787807814457e-17, -0.04155858174616913,
       1.7954621161490198,    -2.0027096612019637,  1.3877787807814457e-17, kNan,
       -1.4363696929192156,   0.09314928654483645,  1.3877787807814457e-17, 1.4545503611159196});
}

// sklearn.preprocessing.MinMaxScaler((-1, 3)).fit_transform(X)
TEST_F(TransformsTest, MinMaxEqualsScikitLearn) {
  const MatrixRows reader = numbers();

  expect_values(result(*fitted("min_max", {{"range", {-1, 3}}}, reader), reader),
                {0.1428571428571428,
                 1.7826086956774816,
                 -0.9999999999999999,
                 kNan,
                 0.33333333333333326,
                 1.2608695653034374,
                 -0.9999999999999999,
                 0.8823529411764705,
                 0.7142857142857142,
                 3.0,
                 -0.9999999999999999,
                 -1.0,
                 1.476190476190476,
                 2.304347826167941,
                 -0.9999999999999999,
                 0.8823529411764705,
                 3.0,
                 -1.0,
                 -0.9999999999999999,
                 kNan,
                 -1.0,
                 1.6086956522194669,
                 -0.9999999999999999,
                 3.0});
}

// sklearn.impute.SimpleImputer(strategy=…).fit(X).statistics_
TEST_F(TransformsTest, ImputeEqualsScikitLearn) {
  const MatrixRows reader = numbers();
  const std::pair<const char*, double> fills[] = {
      {"mean", 3.125}, {"median", 3.0}, {"most_frequent", 3.0}};

  for (const auto& [strategy, fill] : fills) {
    std::vector<double> expected = kValues;
    expected[3] = expected[19] = fill;
    expect_values(result(*fitted("impute", {{"strategy", strategy}}, reader), reader), expected, 0);
  }
}

TEST_F(TransformsTest, ImputeMedianOfAnOddNumberIsTheMiddleOne) {
  const MatrixRows reader = numbers({0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, kNan, 0, 0, 0, 4});

  EXPECT_EQ(result(*fitted("impute", {{"strategy", "median"}}, reader), reader)[11], 4);
}

TEST_F(TransformsTest, ImputeMostFrequentTakesTheSmallestOfEquals) {
  const MatrixRows reader = numbers({0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, kNan, 0, 0, 0, 4});

  EXPECT_EQ(result(*fitted("impute", {{"strategy", "most_frequent"}}, reader), reader)[11], 2);
}

TEST_F(TransformsTest, ImputeFillsCategoriesWithTheMostFrequentOrAGivenOne) {
  const MatrixRows reader = colors();
  const auto frequent = fitted("impute", {}, reader);
  const auto existing = fitted("impute", {{"category", "blue"}}, reader);
  const auto added = fitted("impute", {{"category", "none"}}, reader);

  EXPECT_THAT(result(*frequent, reader, 1), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(result(*existing, reader, 1), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(result(*added, reader, 1), ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(applied(*added, reader).inputs[1].scalar_type(), at::kLong);
  EXPECT_THAT(frequent->output_spec(reader.spec()).inputs[1].columns[0].categories,
              ElementsAre("blue", "red"));
  EXPECT_THAT(added->output_spec(reader.spec()).inputs[1].columns[0].categories,
              ElementsAre("blue", "red", "none"));
}

TEST_F(TransformsTest, ImputeSaysWhatWasMissing) {
  const MatrixRows reader = colors();
  const auto transform =
      fitted("impute", {{"indicator", true}, {"strategy", "constant"}, {"value", 9}}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  EXPECT_THAT(names(after), ElementsAre("n", "m", "m is missing", "color is missing"));
  EXPECT_FALSE(after.inputs[0].columns[1].may_be_missing);
  EXPECT_FALSE(after.inputs[1].columns[0].may_be_missing);
  expect_values(result(*transform, reader), {5, 0.5, 0, 0, 6, 9, 1, 1, 7, 2.5, 0, 0, 8, 3.5, 0, 0});
  expect_values(result(*transform, reader, 1), {1, 1, 0, 1});
}

TEST_F(TransformsTest, WhatBecomesNumbersMakesATableWhereThereIsNone) {
  MatrixRows::Matrices matrices = colors().matrices();
  matrices.spec.inputs.erase(matrices.spec.inputs.begin());
  matrices.inputs.erase(matrices.inputs.begin());
  const MatrixRows reader(std::move(matrices));
  const auto one_hot = fitted("one_hot", {}, reader);
  const auto impute = fitted("impute", {{"indicator", true}}, reader);

  const DataSpec encoded = one_hot->output_spec(reader.spec());
  const DataSpec filled = impute->output_spec(reader.spec());

  ASSERT_EQ(encoded.inputs.size(), 1U);
  EXPECT_EQ(encoded.inputs[0],
            (PortSpec{"features", {2}, {{"color=blue", {}}, {"color=red", {}}}}));
  expect_values(result(*one_hot, reader), {0, 1, 0, 0, 1, 0, 0, 1});
  ASSERT_EQ(filled.inputs.size(), 2U);
  EXPECT_EQ(filled.inputs[1], (PortSpec{"features", {1}, {{"color is missing", {}}}}));
  expect_values(result(*impute, reader, 1), {0, 1, 0, 0});
}

TEST_F(TransformsTest, CategoriesBecomeColumnsOfTheInputTheyBelongTo) {
  MatrixRows::Matrices matrices = colors().matrices();
  matrices.spec.inputs[0].name = "left";
  matrices.spec.inputs[1].name = "left.categories";
  matrices.spec.inputs.push_back({"right", {1}, {{"r", {}}}, Role::kFeatures, at::kDouble});
  matrices.inputs.push_back(at::arange(4, at::kDouble).view({4, 1}));
  matrices.spec.inputs.push_back({"right.categories",
                                  {2},
                                  {{"size", {"S", "L"}}, {"kind", {"x", "y"}}},
                                  Role::kCategories,
                                  at::kLong});
  matrices.inputs.push_back(at::tensor({0, 1, 1, 0, 0, 0, 1, 1}, at::kLong).view({4, 2}));
  const MatrixRows reader(std::move(matrices));

  const auto transform = fitted("one_hot", {{"columns", {"color", "size"}}}, reader);
  const DataSpec after = transform->output_spec(reader.spec());

  ASSERT_EQ(after.inputs.size(), 3U);
  EXPECT_THAT(names(after), ElementsAre("n", "m", "color=blue", "color=red"));
  EXPECT_THAT(names(after, 1), ElementsAre("r", "size=S", "size=L"));
  EXPECT_THAT(names(after, 2), ElementsAre("kind"));
  expect_values(result(*transform, reader, 1), {0, 1, 0, 1, 0, 1, 2, 1, 0, 3, 0, 1});
  expect_values(result(*transform, reader, 2), {1, 0, 0, 1});
}

TEST_F(TransformsTest, ImputeFillsTheNamedColumnsOnly) {
  const MatrixRows reader = colors();
  const auto transform = fitted("impute", {{"columns", {"n", "m"}}}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  EXPECT_TRUE(after.inputs[1].columns[0].may_be_missing);
  EXPECT_FALSE(after.inputs[0].columns[1].may_be_missing);
  EXPECT_EQ(result(*transform, reader, 1)[1], -1);
  EXPECT_DOUBLE_EQ(result(*transform, reader)[3], 6.5 / 3);
}

TEST_F(TransformsTest, OneHotReplacesACategoryByItsValues) {
  const MatrixRows reader = colors();
  const auto transform = fitted("one_hot", {}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  ASSERT_EQ(after.inputs.size(), 1U);
  EXPECT_THAT(names(after), ElementsAre("n", "m", "color=blue", "color=red"));
  EXPECT_EQ(after.inputs[0].shape, std::vector<std::int64_t>{4});
  EXPECT_FALSE(after.inputs[0].columns[2].may_be_missing);
  EXPECT_TRUE(after.inputs[0].columns[1].may_be_missing);
  expect_values(result(*transform, reader),
                {5, 0.5, 0, 1, 6, kNan, 0, 0, 7, 2.5, 1, 0, 8, 3.5, 0, 1});
}

TEST_F(TransformsTest, ScalingLeavesCategoriesAndUnnamedColumnsAlone) {
  const MatrixRows reader = colors();

  const std::vector<double> all = result(*fitted("standardize", {}, reader), reader, 1);
  const std::vector<double> one = result(*fitted("min_max", {{"columns", {"n"}}}, reader), reader);

  EXPECT_THAT(all, ElementsAre(1, -1, 0, 1));
  expect_values(one, {0, 0.5, 1. / 3, kNan, 2. / 3, 2.5, 1, 3.5});
}

TEST_F(TransformsTest, AColumnOfMissingValuesStaysAsItIs) {
  const MatrixRows reader = numbers({1, 2, 3, kNan, 4, 5, 6, kNan});

  EXPECT_TRUE(std::isnan(result(*fitted("standardize", {}, reader), reader)[3]));
  EXPECT_TRUE(std::isnan(result(*fitted("min_max", {}, reader), reader)[3]));
}

TEST_F(TransformsTest, StatisticsAreThoseOfAllChunks) {
  // More rows than fit() reads at a time; mean and variance of 0 … n-1 are known.
  constexpr std::int64_t kMany = 20000;
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"a", {}}}, Role::kFeatures, at::kDouble}};
  matrices.inputs = {at::arange(kMany, at::kDouble).add(1e7).view({kMany, 1})};
  const MatrixRows reader(std::move(matrices));

  const std::vector<double> values = result(*fitted("standardize", {}, reader), reader);

  const double deviation = std::sqrt((static_cast<double>(kMany) * kMany - 1) / 12);
  EXPECT_NEAR(values.front(), -(kMany - 1) / 2. / deviation, 1e-12);
  EXPECT_NEAR(values.back(), (kMany - 1) / 2. / deviation, 1e-12);
}

TEST_F(TransformsTest, MistakesAreOneSentenceEach) {
  const MatrixRows table = numbers();
  const MatrixRows colored = colors();
  const auto fit = [&](const char* component, const Json& parameters, const RowReader& reader) {
    return message_of([&] { fitted(component, parameters, reader); });
  };

  EXPECT_EQ(fit("standardize", {{"columns", {"c1", "c9"}}}, table),
            "standardize: there is no column \"c9\"; the "
            "columns are c0, c1, c2, c3; did you mean \"c0\", \"c1\" or \"c2\"?");
  EXPECT_EQ(fit("min_max", {{"columns", {"color"}}}, colored),
            "min_max: column \"color\" is a category; only numbers can be scaled, one_hot makes "
            "numbers of it");
  EXPECT_EQ(fit("one_hot", {{"columns", {"n"}}}, colored),
            "one_hot: column \"n\" is not a category; list it in \"categorical\" of the data");
  EXPECT_EQ(fit("standardize", {{"target", true}}, table),
            "standardize: \"target\": true needs a target of numbers, but \"y\" is classes");
  EXPECT_EQ(fit("min_max", {{"range", {1, 1}}}, table),
            "/range: must have a lower and an upper end, the lower one first");
  EXPECT_EQ(fit("impute", {}, numbers({1, 2, 3, kNan})),
            "impute: column \"c3\" has no value in the training rows; leave it out of the data's "
            "\"columns\", or give it one with \"strategy\": \"constant\"");
  EXPECT_EQ(fit("impute", {{"value", 1}}, table),
            "/value: has no effect with \"strategy\": \"mean\"");
}

TEST_F(TransformsTest, ATransformWithNothingToChangeIsAMistake) {
  MatrixRows::Matrices tokens;
  tokens.spec.inputs = {{"text", {3}, {}, Role::kTokens, at::kLong, 9}};
  tokens.inputs = {at::zeros({4, 3}, at::kLong)};
  const MatrixRows texts(std::move(tokens));
  const MatrixRows full = numbers({1, 2, 3, 4}, 2);
  const auto fit = [&](const char* component, const Json& parameters, const RowReader& reader) {
    return message_of([&] { fitted(component, parameters, reader); });
  };

  EXPECT_EQ(fit("standardize", {}, texts),
            "standardize: no input has numbers to scale; the inputs are \"text\" (tokens)");
  EXPECT_EQ(fit("min_max", {{"inputs", {"text"}}}, texts),
            "min_max: input \"text\" cannot be scaled; the inputs are \"text\" (tokens)");
  EXPECT_EQ(fit("min_max", {{"inputs", {"texts"}}}, texts),
            "min_max: there is no input \"texts\"; the inputs are text; did you mean \"text\"?");
  EXPECT_EQ(fit("one_hot", {}, full),
            "one_hot: no input has categories; list columns in \"categorical\" of the data, or "
            "leave the transform out; the inputs are \"features\" (numbers)");
  EXPECT_EQ(fit("impute", {}, full),
            "impute: no column has missing values; leave the transform out, or name columns in "
            "\"columns\"; the inputs are \"features\" (numbers)");
  EXPECT_EQ(fit("impute", {{"columns", {"c0"}}}, full), "no error");
  EXPECT_EQ(fit("standardize", {{"axis", "first"}}, full),
            "standardize: \"axis\" is for images and sequences; the columns of a table are scaled "
            "one by one");
}

/// Values 0, 1, 2, … of one input without columns.
MatrixRows array_of(std::int64_t rows, std::vector<std::int64_t> shape, Role role) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"array", shape, {}, role, at::kDouble}};
  shape.insert(shape.begin(), rows);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape)
    count *= extent;
  matrices.inputs = {at::arange(count, at::kDouble).mul(0.37).sin().view(shape).contiguous()};
  return MatrixRows(std::move(matrices));
}

// The mean and the deviation of whatever shares its statistics are 0 and 1, of nothing else.
TEST_F(TransformsTest, ArraysAreScaledPerChannelPerLastDimensionOrAsAWhole) {
  struct Case {
    std::vector<std::int64_t> shape;
    Role role;
    const char* axis;
    std::vector<std::int64_t> over;  // of the batch: the dimensions that share statistics
  };
  const Case cases[] = {{{3, 4, 5}, Role::kImage, "auto", {0, 2, 3}},
                        {{3, 4, 5}, Role::kFeatures, "auto", {0, 2, 3}},
                        {{6, 2}, Role::kFeatures, "auto", {0, 1}},
                        {{3, 4, 5}, Role::kImage, "last", {0, 1, 2}},
                        {{6, 2}, Role::kFeatures, "first", {0, 2}},
                        {{6, 2}, Role::kFeatures, "none", {0, 1, 2}},
                        {{3, 4, 5}, Role::kImage, "none", {0, 1, 2, 3}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.axis) + " of " + std::to_string(one.shape.size()));
    const MatrixRows reader = array_of(30, one.shape, one.role);

    const at::Tensor scaled =
        applied(*fitted("standardize", {{"axis", one.axis}}, reader), reader).inputs[0];
    const at::Tensor mapped =
        applied(*fitted("min_max", {{"axis", one.axis}}, reader), reader).inputs[0];

    EXPECT_LT(scaled.mean(one.over).abs().max().item<double>(), 1e-12);
    EXPECT_LT(scaled.square().mean(one.over).sub(1).abs().max().item<double>(), 1e-12);
    EXPECT_LT(mapped.amin(one.over).abs().max().item<double>(), 1e-12);
    EXPECT_LT(mapped.amax(one.over).sub(1).abs().max().item<double>(), 1e-12);
    const std::int64_t groups = scaled.mean(one.over).numel();
    EXPECT_EQ(groups,
              std::string(one.axis) == "none" ? 1
              : one.over.back() == scaled.dim() - 1 && one.over.size() > 1 && one.over[1] != 1
                  ? one.shape.front()
                  : one.shape.back());
  }
}

TEST_F(TransformsTest, NormalizeScalesLevelsByKnownStatisticsOfEachChannel) {
  const MatrixRows shares = array_of(30, {3, 4, 5}, Role::kImage);  // normal numbers
  MatrixRows::Matrices matrices = shares.matrices();
  matrices.inputs[0] = matrices.inputs[0].sigmoid();
  const MatrixRows in_unit(matrices);
  matrices.inputs[0] = matrices.inputs[0].mul(255).round();
  const MatrixRows in_bytes(matrices);
  const at::Tensor mean = at::tensor({0.485, 0.456, 0.406}, at::kDouble).view({3, 1, 1});
  const at::Tensor deviation = at::tensor({0.229, 0.224, 0.225}, at::kDouble).view({3, 1, 1});
  const Json imagenet{{"statistics", "imagenet"}};
  const auto inputs = [](const RowReader& reader) {
    return gathered(reader, 0, reader.rows()).inputs[0].to(at::kDouble);
  };

  EXPECT_TRUE(applied(*fitted("normalize", imagenet, in_unit), in_unit)
                  .inputs[0]
                  .allclose(inputs(in_unit).sub(mean).div(deviation)));
  EXPECT_TRUE(applied(*fitted("normalize", imagenet, in_bytes), in_bytes)
                  .inputs[0]
                  .allclose(inputs(in_bytes).div(255).sub(mean).div(deviation)));
  EXPECT_TRUE(applied(*fitted("normalize", {{"max_value", 4}, {"std", 2}}, shares), shares)
                  .inputs[0]
                  .allclose(inputs(shares).div(4).sub(0.5).div(2)));
  EXPECT_THROW(fitted("normalize", imagenet, shares), DataError);
  EXPECT_THROW(fitted("normalize", {{"mean", {1, 2}}}, in_unit), DataError);
}

/// Three rows of 1, 3 and 2 time steps of two numbers; a number per step to predict.
MatrixRows padded_steps() {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"series", {kVaries, 2}, {}, Role::kFeatures, at::kDouble},
                          {"series.lengths", {}, {}, Role::kLengths, at::kLong, 0, "series"}};
  matrices.spec.targets = {{"next", TargetKind::kNumbers, {kVaries, 1}, {}, "series"},
                           number_target("total"),
                           number_target("other")};
  matrices.inputs = {
      at::tensor({1., 10., 0., 0., 0., 0., 2., 20., 3., 30., 4., 40., 5., 50., 9., 90., 0., 0.},
                 at::kDouble)
          .view({3, 3, 2}),
      at::tensor({1, 3, 2}, at::kLong)};
  matrices.targets = {
      at::tensor({2., 0., 0., 4., 6., 8., 10., 18., 0.}, at::kDouble).view({3, 3, 1}),
      at::tensor({1., 2., 3.}, at::kDouble).view({3, 1}),
      at::tensor({7., 8., 9.}, at::kDouble).view({3, 1})};
  return MatrixRows(std::move(matrices));
}

// numpy: x = [1, 2, 3, 4, 5, 9]; (x - x.mean()) / x.std()
TEST_F(TransformsTest, PaddingIsLeftOutOfStatisticsAndStaysZero) {
  const MatrixRows reader = padded_steps();
  const double scale = 1 / std::sqrt(136. / 6 - 16);  // mean 4, mean square 136 / 6

  const Batch batch = applied(*fitted("standardize", {{"target", {"next"}}}, reader), reader);

  expect_values(values(batch.inputs[0].select(2, 0)),
                {-3 * scale, 0, 0, -2 * scale, -scale, 0, scale, 5 * scale, 0});
  expect_values(values(batch.inputs[0].select(2, 1)),
                {-3 * scale, 0, 0, -2 * scale, -scale, 0, scale, 5 * scale, 0});
  EXPECT_NEAR(batch.targets[0][1][2][0].item<double>(), 0, 1e-12);
  EXPECT_NEAR(batch.targets[0][2][1][0].item<double>(), 5 * scale, 1e-12);
}

TEST_F(TransformsTest, PositionsOfWeightZeroAreLeftOutOfTheStatisticsOfTargets) {
  MatrixRows::Matrices matrices = numbers().matrices();
  matrices.spec.targets = {number_target("y")};
  matrices.targets = {at::tensor({1., 3., 1e9, 2., 1e9, 2.}, at::kDouble).view({6, 1})};
  matrices.position_weights = {at::tensor({1., 0.5, 0., 1., 0., 1.}, at::kDouble)};
  const MatrixRows reader(std::move(matrices));

  const Batch batch = applied(*fitted("min_max", {{"target", true}}, reader), reader);

  EXPECT_EQ(batch.targets[0][0].item<double>(), 0);
  EXPECT_EQ(batch.targets[0][1].item<double>(), 1);
  EXPECT_EQ(batch.targets[0][3].item<double>(), 0.5);
}

TEST_F(TransformsTest, TargetsOfNumbersAreScaledAllOrByNameAndTurnedBack) {
  const MatrixRows reader = padded_steps();
  const auto all = fitted("min_max", {{"target", true}}, reader);
  const auto one = fitted("min_max", {{"target", {"total"}}}, reader);

  const Batch by_all = applied(*all, reader);
  const Batch by_one = applied(*one, reader);

  EXPECT_THAT(values(by_all.targets[1]), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(values(by_all.targets[2]), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(values(by_one.targets[1]), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(values(by_one.targets[2]), ElementsAre(7, 8, 9));
  EXPECT_THAT(values(by_one.original_targets[1]), ElementsAre(1, 2, 3));
  for (const char* name : {"next", "total", "other"}) {
    const std::size_t i = reader.spec().target_index(name);
    expect_values(values(all->invert(by_all.targets[i], name)), values(reader.targets(i)));
    expect_values(values(one->invert(by_one.targets[i], name)), values(reader.targets(i)));
  }
  EXPECT_EQ(message_of([&] {
              fitted("min_max", {{"target", {"totl"}}}, reader);
            }),
            "min_max: there is no target \"totl\"; the targets are next, total, other; did you "
            "mean \"total\"?");
  EXPECT_EQ(message_of([&] {
              fitted("min_max", {{"target", {"y"}}}, numbers());
            }),
            "min_max: \"target\" names \"y\", which is classes; only numbers can be scaled");
}

TEST_F(TransformsTest, OutputSpecFindsTheMistakesThatFitWould) {
  const MatrixRows table = numbers();
  const auto transform = plugin().make<Transform>("standardize", {{"columns", {"zz"}}});

  EXPECT_THROW(transform->output_spec(table.spec()), DataError);
}

/// Windows of two rows over the rows 1, 2, 4, 8, 16, each of which predicts the row after it.
class Pairs final : public SampleReader {
 public:
  Pairs() : steps_(table({1, 2, 4, 8, 16}, {10, 20, 40, 80, 160})) {}

 private:
  static MatrixRows::Matrices table(std::vector<double> inputs, std::vector<double> targets) {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"features", {1}, {}, Role::kFeatures, at::kDouble}};
    matrices.spec.targets = {number_target("y")};
    matrices.inputs = {at::tensor(inputs, at::kDouble).unsqueeze(1)};
    matrices.targets = {at::tensor(targets, at::kDouble).unsqueeze(1)};
    return matrices;
  }
  static DataSpec windows(DataSpec spec) {
    spec.inputs[0].shape = {2, 1};
    return spec;
  }
  SourceRows do_source_rows(std::int64_t sample) const override {
    return {{sample, sample + 2}, {sample + 2, sample + 3}};
  }
  const RowReader* do_steps() const override { return &steps_; }
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return 3; }
  void do_gather(std::span<const std::int64_t> samples, Batch& out) const override {
    const at::Tensor first = out.rows;
    const at::Tensor x = steps_.matrices().inputs[0];
    out.inputs = {at::stack({x.index_select(0, first), x.index_select(0, first + 1)}, 1)};
    out.targets = {steps_.targets(0).index_select(0, first + 2)};
    EXPECT_EQ(static_cast<std::int64_t>(samples.size()), first.size(0));
  }
  at::Tensor do_targets(std::size_t) const override { return steps_.targets(0).slice(0, 2); }

  const MatrixRows steps_;
  const DataSpec spec_ = windows(steps_.spec());
};

// By hand: the first two samples touch the rows 0 to 3, with inputs 1, 2, 4, 8 and targets 10, 20,
// 40, 80: of min_max, 1 becomes 0 and 8 becomes 1; 10 becomes 0 and 80 becomes 1. Of the windows
// alone 4 would be the largest, and 40 the smallest target.
TEST(Scalers, BehindWindowsCountEachRowThatTrainingTouchesOnce) {
  const Pairs samples;
  const auto scaler = plugin().make<Transform>("min_max", {{"target", true}});
  const std::vector<std::int64_t> training{0, 1};
  scaler->fit(samples, training);

  Batch batch;
  samples.gather(std::vector<std::int64_t>{1}, batch);
  scaler->apply(batch, ApplyContext());

  EXPECT_NEAR(batch.inputs[0][0][0][0].item<double>(), 1.0 / 7, 1e-12);
  EXPECT_NEAR(batch.inputs[0][0][1][0].item<double>(), 3.0 / 7, 1e-12);
  EXPECT_NEAR(batch.targets[0][0][0].item<double>(), 1, 1e-12);

  const auto standard = plugin().make<Transform>("standardize", Json::object());
  standard->fit(samples, training);
  samples.gather(std::vector<std::int64_t>{0}, batch);
  standard->apply(batch, ApplyContext());
  // mean 3.75, population deviation sqrt((1 + 4 + 16 + 64) / 4 - 3.75^2)
  EXPECT_NEAR(batch.inputs[0][0][0][0].item<double>(), -2.75 / std::sqrt(85.0 / 4 - 3.75 * 3.75),
              1e-12);
}

/// Two windows of two rows: the numbers "a", "b" and the category "day".
MatrixRows window_rows() {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {
      {"features", {2, 2}, {{"a"}, {"b"}}, Role::kFeatures, at::kDouble},
      {"categories", {2, 1}, {{"day", {"mo", "tu", "we"}}}, Role::kCategories, at::kLong}};
  matrices.inputs = {
      at::tensor({1., 10., 2., 20., 3., 30., 4., 40.}).to(at::kDouble).view({2, 2, 2}),
      at::tensor({0, 2, 2, 1}, at::kLong).view({2, 2, 1})};
  return MatrixRows(std::move(matrices));
}

Batch transformed(const std::string& name, const Json& parameters) {
  const MatrixRows reader = window_rows();
  const auto transform = plugin().make<Transform>(name, parameters);
  transform->fit(reader, std::vector<std::int64_t>{0, 1});
  Batch batch;
  reader.gather(std::vector<std::int64_t>{0, 1}, batch);
  transform->apply(batch, ApplyContext());
  return batch;
}

// By hand: "a" is 1, 2, 3, 4, and min_max makes thirds of it.
TEST(Windows, HaveColumnsThatAreScaledByName) {
  const Batch batch = transformed("min_max", {{"columns", {"a"}}});

  const at::Tensor a = batch.inputs[0].select(2, 0).flatten();
  EXPECT_TRUE(at::allclose(a, at::arange(4, at::kDouble).div(3)));
  EXPECT_TRUE(
      batch.inputs[0].select(2, 1).flatten().equal(at::arange(4, at::kDouble).add(1).mul(10)));
}

TEST(Windows, HaveCategoriesThatBecomeNumbersAtEachStep) {
  const Batch batch = transformed("one_hot", Json::object());
  const DataSpec after =
      plugin().make<Transform>("one_hot", Json::object())->output_spec(window_rows().spec());

  ASSERT_EQ(batch.inputs.size(), 1U);
  EXPECT_EQ(after.inputs[0].shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(after.inputs[0].columns[3].name, "day=tu");
  EXPECT_EQ(batch.inputs[0].sizes(), (std::vector<std::int64_t>{2, 2, 5}));
  EXPECT_TRUE(
      batch.inputs[0].select(2, 4).flatten().equal(at::tensor({0., 1., 1., 0.}).to(at::kDouble)));
}

}  // namespace
}  // namespace treadle::testing
