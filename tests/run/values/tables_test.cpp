// Every family of networks for tables is trained as a user would, and beats the figures of
// tables_reference.py (scikit-learn 1.2), which are means over five draws of the same data.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <ostream>
#include <string>

#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::Workspace;
namespace fs = std::filesystem;

double metric_of(const json& document, const std::string& metric) {
  const Runtime runtime;
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const auto value = outcome.result.at(metric);
  ::testing::Test::RecordProperty(metric, std::to_string(value));
  return value;
}

json network(json builder) {
  return {{"use", "flow"}, {"flow", {{{"use", "graph"}, {"builder", std::move(builder)}}}}};
}

/// Dense layers behind one that encodes each column.
json behind(json embedding) {
  return {{"use", "flow"},
          {"flow",
           {std::move(embedding),
            {{"use", "dense"}, {"out_features", 64}},
            "relu",
            {{"use", "dense"}, {"out_features", 64}},
            "relu",
            "head"}}};
}

constexpr double kRidge = 2.594;
constexpr double kRadialBasis = 1.353;
constexpr double kGradientBoosting = 1.312;

struct Family {
  std::string name;
  json parts;  // of the document
  double rate = 0;
  int epochs = 0;
  int batch = 64;
  double reference = kGradientBoosting;
};

std::ostream& operator<<(std::ostream& out, const Family& family) {
  return out << family.name;
}

class TableFamily : public ::testing::TestWithParam<Family> {};

// Friedman #1 with a noise of 1, which no model can go below: 2000 rows to train on, 500 held out.
TEST_P(TableFamily, BeatsItsReference) {
  const Family& family = GetParam();
  json document{{"treadle", 1},
                {"seed", 3},
                {"data", {{"use", "friedman1"}, {"rows", 2500}, {"noise", 1.0}}},
                {"transforms", {{{"use", "standardize"}, {"target", true}}}},
                {"validation", {{"use", "hold_out"}, {"rows", 500}}},
                {"metrics", {"rmse"}}};
  if (family.epochs > 0) {
    document["optimizer"] = {{"use", "adamw"}, {"learning_rate", family.rate}};
    document["schedule"] = {{"use", "cosine"}, {"warmup", "5%"}};
    document["training"] = {{"epochs", family.epochs}, {"batch_size", family.batch}};
  }
  document.update(family.parts);

  EXPECT_LT(metric_of(document, "rmse"), family.reference);
}

INSTANTIATE_TEST_SUITE_P(
    OfFriedman, TableFamily,
    ::testing::Values(Family{"Mlp", {{"model", {{"use", "mlp"}, {"hidden", {64, 64}}}}}, 0.005, 30},
                      Family{"ResNet",
                             {{"model", network({{"use", "residual_mlp"},
                                                 {"blocks", 2},
                                                 {"width", 64},
                                                 {"hidden", 128},
                                                 {"dropout", 0.1}})}},
                             0.005,
                             30},
                      Family{"PiecewiseLinear",
                             {{"transforms",
                               {{{"use", "standardize"}, {"target", true}},
                                {{"use", "quantile_bins"}, {"bins", 8}}}},
                              {"model", behind({{"use", "piecewise_linear_embedding"},
                                                {"bins", 8},
                                                {"range", {0, 8}},
                                                {"embedding_dim", 8},
                                                {"flatten", true}})}},
                             0.003,
                             30},
                      Family{"Periodic",
                             {{"model", behind({{"use", "periodic_embedding"},
                                                {"n_frequencies", 8},
                                                {"sigma", 0.1},
                                                {"embedding_dim", 8},
                                                {"flatten", true}})}},
                             0.003,
                             30},
                      Family{
                          "TabM",
                          {{"loss", {{"use", "ensemble"}, {"members", 16}, {"loss", "mse"}}},
                           {"model", network({{"use", "tabm"}, {"width", 64}, {"num_layers", 2}})}},
                          0.005,
                          30},
                      Family{"FtTransformer",
                             {{"model", network({{"use", "ft_transformer"},
                                                 {"width", 24},
                                                 {"num_layers", 2},
                                                 {"num_heads", 4},
                                                 {"dropout", 0.0}})}},
                             0.004,
                             15},
                      Family{"TabNet", {{"model", network({{"use", "tabnet"}})}}, 0.02, 80, 128},
                      Family{"Saint",
                             {{"model", network({{"use", "saint"},
                                                 {"width", 8},
                                                 {"num_heads", 2},
                                                 {"row_head_dim", 16},
                                                 {"hidden", 32},
                                                 {"dropout", 0.0}})}},
                             0.004,
                             15}),
    [](const auto& info) { return info.param.name; });

TEST(ClosedFormOfFriedman, IsCloseToScikitLearn) {
  json document{{"treadle", 1},
                {"seed", 3},
                {"data", {{"use", "friedman1"}, {"rows", 2500}, {"noise", 1.0}}},
                {"transforms", {{{"use", "standardize"}}}},
                {"model", "linear"},
                {"training", {{"use", "closed_form"}}},
                {"validation", {{"use", "hold_out"}, {"rows", 500}}},
                {"metrics", {"rmse"}}};
  EXPECT_NEAR(metric_of(document, "rmse"), kRidge, 0.15);

  document["model"] = {
      {"use", "flow"},
      {"flow",
       {{{"use", "random_fourier_features"}, {"out_features", 1024}, {"gamma", 0.05}}, "head"}}};
  document["training"]["alpha"] = 0.1;
  EXPECT_NEAR(metric_of(document, "rmse"), kRadialBasis, 0.09);
}

TEST(ClosedFormOfBreastCancer, ClassifiesAsScikitLearnsRidge) {
  const fs::path file = fs::path(std::getenv("TREADLE_DATA")) / "breast_cancer.csv";
  if (!fs::exists(file))
    GTEST_SKIP() << "needs " << file << ", which is absent";
  const json document{
      {"treadle", 1},
      {"data",
       {{"use", "csv"},
        {"path", file.string()},
        {"header", false},
        {"skip_rows", 1},
        {"task", "classification"}}},
      {"transforms", {"standardize"}},
      {"model", "linear"},
      {"training", {{"use", "closed_form"}}},
      {"validation", {{"use", "k_fold"}, {"folds", 5}, {"stratify", true}, {"refit", false}}},
      {"metrics", {"accuracy"}}};

  EXPECT_NEAR(metric_of(document, "accuracy"), 0.9585, 0.008);
}

// Rows look at each other, and still each is predicted by itself.
TEST(SaintOfFriedman, IsJudgedTheSameHoweverRowsAreCutIntoBatches) {
  json document{{"treadle", 1},
                {"seed", 3},
                {"data", {{"use", "friedman1"}, {"rows", 300}}},
                {"transforms", {{{"use", "standardize"}, {"target", true}}}},
                {"model", network({{"use", "saint"}, {"width", 8}, {"hidden", 16}})},
                {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.003}}},
                {"training", {{"epochs", 2}, {"evaluation_batch_size", 100}}},
                {"validation", {{"use", "hold_out"}, {"rows", 100}}},
                {"metrics", {"rmse"}}};
  const double together = metric_of(document, "rmse");

  for (const int rows : {1, 7}) {
    document["training"]["evaluation_batch_size"] = rows;
    EXPECT_NEAR(metric_of(document, "rmse"), together, 1e-5 * together) << rows;
  }
}

// The category turns the sign: without it, a coin would do as well.
class CategoriesOf : public ::testing::TestWithParam<Family> {};

TEST_P(CategoriesOf, CountInTheNetwork) {
  const Workspace workspace;
  const fs::path file = workspace.folder() / "signs.csv";
  {
    std::ofstream out(file);
    out << "a,b,town,class\n";
    const char* const towns[] = {"Bonn", "Kiel", "Ulm"};
    for (int row = 0; row < 600; ++row) {
      const double a = std::sin(1.3 * row);
      const int town = row * 7 % 11 % 3;
      const bool is_up = (town == 1 ? -a : a) > 0;
      out << a << ',' << std::cos(2.7 * row) << ',' << towns[town] << ',' << (is_up ? "up" : "down")
          << '\n';
    }
  }
  json document{
      {"treadle", 1},
      {"data",
       {{"use", "csv"}, {"path", file.string()}, {"target", "class"}, {"categorical", {"town"}}}},
      {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.005}}},
      {"training", {{"epochs", 15}, {"batch_size", 32}}},
      {"validation", {{"use", "hold_out"}, {"rows", 200}}},
      {"metrics", {"accuracy"}}};
  json steps = json::array({{{"use", "input"}, {"names", {"categories"}}}});
  for (const json& step : GetParam().parts)
    steps.push_back(step);
  document["model"] = {{"use", "flow"}, {"flow", std::move(steps)}};

  EXPECT_GT(metric_of(document, "accuracy"), 0.95);
}

json with_categories(json builder) {
  return {{"use", "graph"}, {"builder", std::move(builder)}, {"using", {"categories"}}};
}

INSTANTIATE_TEST_SUITE_P(
    Families, CategoriesOf,
    ::testing::Values(
        Family{
            "ResNetBehindEmbeddings",
            json::array({with_categories({{"use", "table_embedding"}}),
                         {{"use", "graph"},
                          {"builder", {{"use", "residual_mlp"}, {"blocks", 1}, {"width", 16}}}}})},
        Family{
            "FtTransformer",
            json::array({with_categories(
                {{"use", "ft_transformer"}, {"width", 16}, {"num_layers", 1}, {"num_heads", 2}})})},
        Family{"Saint", json::array({with_categories(
                            {{"use", "saint"}, {"width", 8}, {"num_heads", 2}, {"hidden", 32}})})}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle
