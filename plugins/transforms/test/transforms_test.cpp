#include <cmath>
#include <limits>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/testing/plugin_under_test.h>
#include <treadle/testing/transform_contract.h>

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
        transform_case("MinMax", "min_max"),
        transform_case("MinMaxTarget", "min_max", {{"target", true}, {"range", {-1, 1}}}),
        transform_case("OneHot", "one_hot"),
        transform_case("OneHotSome", "one_hot", {{"columns", {"shape"}}}),
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
    PortSpec port{"features", {width}, {}};
    for (std::int64_t c = 0; c < width; ++c)
      port.columns.push_back({"c" + std::to_string(c), {}, c == 3});
    matrices.spec.inputs = {port};
    matrices.inputs = {at::tensor(values, at::kDouble).view({rows, width})};
    matrices.spec.target = {"y", TargetKind::kClasses, 1, {"A", "B"}};
    matrices.targets = at::arange(rows).remainder(2);
    return MatrixRows(std::move(matrices));
  }

  static MatrixRows colors() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"features", {3}, {{"n", {}, false}, {"color", {"blue", "red"}, true}, {"m", {}, true}}}};
    matrices.inputs = {
        at::tensor({5., 1., 0.5, 6., kNan, kNan, 7., 0., 2.5, 8., 1., 3.5}).view({4, 3})};
    return MatrixRows(std::move(matrices));
  }

  static std::vector<double> result(const Transform& transform, const RowReader& reader) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(reader.rows()));
    std::iota(rows.begin(), rows.end(), 0);
    Batch batch;
    reader.gather(rows, batch);
    transform.apply(batch, ApplyContext{});
    const at::Tensor flat = batch.inputs[0].contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
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

  static std::vector<std::string> names(const DataSpec& spec) {
    std::vector<std::string> names;
    for (const Column& column : spec.inputs[0].columns)
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

  EXPECT_EQ(result(*frequent, reader)[4], 1);
  EXPECT_EQ(result(*existing, reader)[4], 0);
  EXPECT_EQ(result(*added, reader)[4], 2);
  EXPECT_THAT(frequent->output_spec(reader.spec()).inputs[0].columns[1].categories,
              ElementsAre("blue", "red"));
  EXPECT_THAT(added->output_spec(reader.spec()).inputs[0].columns[1].categories,
              ElementsAre("blue", "red", "none"));
}

TEST_F(TransformsTest, ImputeSaysWhatWasMissing) {
  const MatrixRows reader = colors();
  const auto transform =
      fitted("impute", {{"indicator", true}, {"strategy", "constant"}, {"value", 9}}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  EXPECT_THAT(names(after), ElementsAre("n", "color", "m", "color is missing", "m is missing"));
  EXPECT_FALSE(after.inputs[0].columns[1].may_be_missing);
  expect_values(result(*transform, reader),
                {5, 1, 0.5, 0, 0, 6, 1, 9, 1, 1, 7, 0, 2.5, 0, 0, 8, 1, 3.5, 0, 0});
}

TEST_F(TransformsTest, ImputeFillsTheNamedColumnsOnly) {
  const MatrixRows reader = colors();
  const auto transform = fitted("impute", {{"columns", {"n", "m"}}}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  EXPECT_TRUE(after.inputs[0].columns[1].may_be_missing);
  EXPECT_FALSE(after.inputs[0].columns[2].may_be_missing);
  EXPECT_TRUE(std::isnan(result(*transform, reader)[4]));
  EXPECT_DOUBLE_EQ(result(*transform, reader)[5], 6.5 / 3);
}

TEST_F(TransformsTest, OneHotReplacesACategoryByItsValues) {
  const MatrixRows reader = colors();
  const auto transform = fitted("one_hot", {}, reader);

  const DataSpec after = transform->output_spec(reader.spec());

  EXPECT_THAT(names(after), ElementsAre("n", "color=blue", "color=red", "m"));
  EXPECT_EQ(after.inputs[0].shape, std::vector<std::int64_t>{4});
  EXPECT_FALSE(after.inputs[0].columns[1].may_be_missing);
  EXPECT_TRUE(after.inputs[0].columns[3].may_be_missing);
  expect_values(result(*transform, reader),
                {5, 0, 1, 0.5, 6, 0, 0, kNan, 7, 1, 0, 2.5, 8, 0, 1, 3.5});
}

TEST_F(TransformsTest, ScalingLeavesCategoriesAndUnnamedColumnsAlone) {
  const MatrixRows reader = colors();

  const std::vector<double> all = result(*fitted("standardize", {}, reader), reader);
  const std::vector<double> one = result(*fitted("min_max", {{"columns", {"n"}}}, reader), reader);

  EXPECT_EQ(all[1], 1);
  EXPECT_EQ(all[7], 0);
  expect_values(one, {0, 1, 0.5, 1. / 3, kNan, kNan, 2. / 3, 0, 2.5, 1, 1, 3.5});
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
  matrices.spec.inputs = {{"features", {1}, {{"a", {}, false}}}};
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
            "standardize: \"target\": true needs number targets, but the target \"y\" is classes");
  EXPECT_EQ(fit("min_max", {{"range", {1, 1}}}, table),
            "/range: must have a lower and an upper end, the lower one first");
  EXPECT_EQ(fit("impute", {}, numbers({1, 2, 3, kNan})),
            "impute: column \"c3\" has no value in the training rows; leave it out of the data's "
            "\"columns\", or give it one with \"strategy\": \"constant\"");
}

TEST_F(TransformsTest, OutputSpecFindsTheMistakesThatFitWould) {
  const MatrixRows table = numbers();
  const auto transform = plugin().make<Transform>("standardize", {{"columns", {"zz"}}});

  EXPECT_THROW(transform->output_spec(table.spec()), DataError);
}

}  // namespace
}  // namespace treadle::testing
