// Samples of predicted distributions: files, paths of forecasts, units, seeds.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/safetensors.h>

#include "one_core.h"
#include "workspace.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using testing::OneCore;
using testing::read_file;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// A file of a prediction: names of its columns, and their texts by row.
struct Table {
  explicit Table(const fs::path& file) {
    std::istringstream text(read_file(file));
    std::string line;
    std::getline(text, line);
    names = fields(line);
    while (std::getline(text, line))
      rows.push_back(fields(line));
  }

  static std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream text(line);
    for (std::string part; std::getline(text, part, ',');)
      parts.push_back(part);
    return parts;
  }

  std::size_t column(const std::string& name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    EXPECT_NE(found, names.end()) << name;
    return static_cast<std::size_t>(found - names.begin());
  }
  double number(std::size_t row, const std::string& name) const {
    return std::stod(rows.at(row).at(column(name)));
  }
  /// Of all rows: [rows, samples].
  at::Tensor samples(const std::string& target) const {
    const std::size_t first = column(target + ".sample_0");
    std::vector<double> numbers;
    for (const std::vector<std::string>& row : rows) {
      for (std::size_t c = first; c < row.size() && names[c].starts_with(target + ".sample_"); ++c)
        numbers.push_back(std::stod(row[c]));
    }
    return at::tensor(numbers, at::kDouble).view({static_cast<std::int64_t>(rows.size()), -1});
  }

  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
};

constexpr double kPhi = 0.8;
constexpr double kConstant = 1.5;
constexpr double kRawScale = 0.3;
const double kScale = std::log1p(std::exp(kRawScale)) + 1e-6;

/// Series that end with the given values.
void write_series(const fs::path& file, const std::vector<double>& ends, double times = 1,
                  double plus = 0) {
  std::ofstream out(file);
  out << "series,day,y\n";
  for (std::size_t s = 0; s < ends.size(); ++s) {
    for (int day = 0; day < 30; ++day) {
      const double value = ends[s] + std::sin(0.7 * (29 - day));
      out << "s" << s << "," << day << "," << times * value + plus << "\n";
    }
  }
}

/// y[t + 1] is normal around kConstant + kPhi y[t]: a linear model with these weights, which the
/// training does not move.
Json autoregression(const Workspace& workspace, const fs::path& data) {
  const fs::path weights = workspace.folder() / "given.safetensors";
  write_safetensors(
      weights, TensorFile{{{"layers.0.weight", at::tensor({kPhi, 0.0}, at::kFloat).view({2, 1})},
                           {"layers.0.bias", at::tensor({kConstant, kRawScale}, at::kFloat)}},
                          {}});
  Json document = Json::parse(R"({
    "treadle": 1, "name": "paths", "seed": 4,
    "data": {"use": "csv", "group": "series", "time": "day", "target": "y", "columns": ["y"],
             "task": "regression"},
    "sequence": {"use": "windows", "lookback": 1, "horizon": 1},
    "validation": {"use": "hold_out", "strategy": "chronological"},
    "optimizer": {"use": "adamw", "learning_rate": 1e-30, "weight_decay": 0},
    "loss": {"use": "gaussian_nll", "quantiles": [0.1, 0.9]},
    "training": {"use": "standard", "epochs": 1, "batch_size": 16}})");
  document["data"]["path"] = data.string();
  document["model"] = {{"use", "linear"}, {"weights", {{"path", weights.string()}}}};
  return document;
}

class Samples : public ::testing::Test {
 protected:
  Predictor trained(const Json& document) {
    const RunOutcome outcome =
        run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
    return Predictor::load(runtime_, outcome.folder);
  }
  fs::path path(const std::string& name) const { return workspace_.folder() / name; }

  Workspace workspace_;
  Runtime runtime_;
};

// An autoregression has a normal forecast h steps ahead: with phi^h of the last value, and the
// variance s^2 (1 - phi^(2 h)) / (1 - phi^2) (Hamilton, "Time Series Analysis", 1994, section 4.2).
// Bounds are five standard errors of the samples.
TEST_F(Samples, OfPathsSpreadAsTheForecastOfAnAutoregressionDoes) {
  constexpr std::int64_t kPaths = 20'000;
  constexpr std::int64_t kSteps = 8;
  write_series(path("series.csv"), {0, 20});
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));

  EXPECT_EQ(
      predictor.continue_series(path("series.csv"), path("out.csv"), kSteps, {kPaths, 5}).rows,
      2 * kSteps);

  const Table table(path("out.csv"));
  const at::Tensor samples = table.samples("y");
  ASSERT_EQ(samples.size(1), kPaths);
  const double root = std::sqrt(static_cast<double>(kPaths));
  const double last[] = {0, 20};
  for (std::int64_t series = 0; series < 2; ++series) {
    double mean = last[series];
    for (std::int64_t step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(std::to_string(series) + ", step " + std::to_string(step + 1));
      mean = kConstant + kPhi * mean;
      const double variance =
          kScale * kScale * (1 - std::pow(kPhi, 2 * (step + 1))) / (1 - kPhi * kPhi);
      const at::Tensor path = samples[series * kSteps + step];
      const auto row = static_cast<std::size_t>(series * kSteps + step);
      EXPECT_NEAR(path.mean().item<double>(), mean, 5 * std::sqrt(variance) / root);
      EXPECT_NEAR(path.var().item<double>(), variance, 5 * std::sqrt(2.0) * variance / root);
      // Columns of the mean and the quantiles are of the whole forecast.
      EXPECT_NEAR(table.number(row, "y"), mean, 5 * std::sqrt(variance) / root);
      constexpr double kNormalQuantile = 1.2815515655446004;
      constexpr double kDensity = 0.17549833193248685;  // of a normal number there
      const double error = std::sqrt(0.1 * 0.9 * variance) / kDensity / root;
      EXPECT_NEAR(table.number(row, "y.q0.1"), mean - kNormalQuantile * std::sqrt(variance),
                  5 * error);
      EXPECT_NEAR(table.number(row, "y.q0.9"), mean + kNormalQuantile * std::sqrt(variance),
                  5 * error);
      // Of one path: y[h] has phi^(h - 1) of the deviation of y[1].
      const at::Tensor first = samples[series * kSteps];
      const double covariance =
          path.sub(path.mean()).mul(first.sub(first.mean())).mean().item<double>();
      EXPECT_NEAR(covariance, std::pow(kPhi, step) * kScale * kScale,
                  5 * kScale * std::sqrt(2 * variance) / root);
    }
  }
}

TEST_F(Samples, LeaveTheFirstHorizonAsItIs) {
  write_series(path("series.csv"), {0, 20});
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));

  predictor.continue_series(path("series.csv"), path("plain.csv"), 3);
  predictor.continue_series(path("series.csv"), path("drawn.csv"), 3, {10, 5});

  const Table plain(path("plain.csv"));
  const Table drawn(path("drawn.csv"));
  for (const std::size_t row : {0, 3}) {
    for (const char* const column : {"y", "y.q0.1", "y.q0.9"})
      EXPECT_EQ(plain.number(row, column), drawn.number(row, column)) << column;
  }
  EXPECT_NE(plain.number(2, "y.q0.9"), drawn.number(2, "y.q0.9"));
  EXPECT_EQ(drawn.names.size(), plain.names.size() + 10);
}

TEST_F(Samples, AreThoseOfTheirSeedForAnyNumberOfWorkers) {
  // Windows for several batches.
  write_series(path("series.csv"), std::vector<double>(120, 3));
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));
  const auto predicted = [&](const SampleOptions& samples) {
    predictor.predict_file(path("series.csv"), path("out.csv"), {}, samples);
    return read_file(path("out.csv"));
  };
  const auto continued = [&](const SampleOptions& samples) {
    predictor.continue_series(path("series.csv"), path("out.csv"), 4, samples);
    return read_file(path("out.csv"));
  };

  const std::string file = predicted({3, 1});
  const std::string paths = continued({3, 1});

  EXPECT_EQ(predicted({3, 1}), file);
  EXPECT_NE(predicted({3, 2}), file);
  EXPECT_EQ(continued({3, 1}), paths);
  EXPECT_NE(continued({3, 2}), paths);
  const OneCore one;
  EXPECT_EQ(predicted({3, 1}), file);
  EXPECT_EQ(continued({3, 1}), paths);
}

TEST_F(Samples, AreTheFirstOfMore) {
  write_series(path("series.csv"), {3, 5});
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));
  const auto samples = [&](std::int64_t count, bool continues) {
    const SampleOptions drawn{count, 8};
    if (continues) {
      predictor.continue_series(path("series.csv"), path("out.csv"), 5, drawn);
    } else {
      predictor.predict_file(path("series.csv"), path("out.csv"), {}, drawn);
    }
    return Table(path("out.csv")).samples("y");
  };

  for (const bool continues : {false, true})
    EXPECT_TRUE(at::allclose(samples(40, continues).slice(1, 0, 7), samples(7, continues)));
}

TEST_F(Samples, OfARowDoNotDependOnTheRowsBesideIt) {
  write_series(path("series.csv"), {3, 5});
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));
  const at::Tensor windows = at::arange(12, at::kFloat).view({12, 1, 1});
  const PredictOptions options{.samples = {50, 6}};

  const Prediction all = predictor.predict(windows, options);
  const Prediction some = predictor.predict(windows.slice(0, 0, 5), options);

  EXPECT_EQ(all.samples.sizes(), (std::vector<std::int64_t>{50, 12, 1}));
  EXPECT_TRUE(at::allclose(all.samples.slice(1, 0, 5), some.samples));
  EXPECT_FALSE(predictor.predict(windows).samples.defined());
  // In the units of the prediction.
  EXPECT_NEAR(all.samples.sub(all.values).std().item<double>(), kScale, 0.1);
}

// The same series in other units: standardized they are equal, and so is what is drawn of them.
TEST_F(Samples, HaveTheUnitsOfTheTarget) {
  constexpr double kTimes = 250;
  constexpr double kPlus = 4000;
  write_series(path("series.csv"), {3, 5});
  write_series(path("changed.csv"), {3, 5}, kTimes, kPlus);
  const auto samples_of = [&](const std::string& file) {
    Json document = autoregression(workspace_, path(file));
    document["transforms"] = Json::parse(R"([{"use": "standardize", "target": true}])");
    const Predictor predictor = trained(document);
    predictor.predict_file(path(file), path("out.csv"), {}, {20, 1});
    const at::Tensor rows = Table(path("out.csv")).samples("y");
    predictor.continue_series(path(file), path("out.csv"), 4, {20, 1});
    return std::pair(rows, Table(path("out.csv")).samples("y"));
  };

  const auto [rows, paths] = samples_of("series.csv");
  const auto [changed_rows, changed_paths] = samples_of("changed.csv");

  EXPECT_TRUE(at::allclose(changed_rows, rows.mul(kTimes).add(kPlus), 1e-5, kTimes * 1e-4));
  EXPECT_TRUE(at::allclose(changed_paths, paths.mul(kTimes).add(kPlus), 1e-5, kTimes * 1e-4));
  EXPECT_GT(changed_paths.std(1).min().item<double>(), kTimes * 0.2);
}

TEST_F(Samples, OfCountsAreWholeNumbersInTheFile) {
  std::ofstream(path("counts.csv")) << "x,y\n1,3\n2,0\n3,12\n4,5\n5,7\n6,2\n7,9\n8,4\n";
  const Json document = Json::parse(R"({
    "treadle": 1, "name": "counts", "seed": 4,
    "data": {"use": "csv", "target": "y", "task": "regression"},
    "model": "linear", "loss": "negative_binomial_nll",
    "validation": {"use": "hold_out", "fraction": 0.25},
    "training": {"use": "standard", "epochs": 2}})");
  Json with_data = document;
  with_data["data"]["path"] = path("counts.csv").string();
  const Predictor predictor = trained(with_data);

  predictor.predict_file(path("counts.csv"), path("out.csv"), {"x"}, {30, 3});

  const Table table(path("out.csv"));
  EXPECT_EQ(table.names[0], "row");
  EXPECT_EQ(table.names[1], "x");
  EXPECT_EQ(table.names[2], "y");
  const std::size_t first = table.column("y.sample_0");
  EXPECT_EQ(table.names.size(), first + 30);
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t c = first; c < row.size(); ++c)
      EXPECT_EQ(row[c].find_first_not_of("0123456789"), std::string::npos) << row[c];
  }
}

TEST_F(Samples, OfSeveralTargetsAreDrawnApart) {
  std::ofstream out(path("two.csv"));
  out << "x,a,b\n";
  for (int row = 0; row < 40; ++row)
    out << row % 7 << "," << row % 5 << "," << row % 3 << "\n";
  out.close();
  Json document = Json::parse(R"({
    "treadle": 1, "name": "two", "seed": 4,
    "data": {"use": "csv", "columns": ["x"],
             "target": [{"name": "a", "columns": ["a"]}, {"name": "b", "columns": ["b"]}],
             "task": "regression"},
    "model": "linear",
    "loss": [{"use": "gaussian_nll", "target": "a"}, {"use": "gaussian_nll", "target": "b"}],
    "validation": {"use": "hold_out", "fraction": 0.25},
    "training": {"use": "standard", "epochs": 1}})");
  document["data"]["path"] = path("two.csv").string();
  const Predictor predictor = trained(document);
  const at::Tensor rows = at::zeros({1, 1});

  const Predictions both = predictor.predict(std::span(&rows, 1), {.samples = {4000, 3}});

  const auto normal = [](const Prediction& prediction) {
    const at::Tensor flat = prediction.samples.flatten().to(at::kDouble);
    return flat.sub(flat.mean()).div(flat.std());
  };
  EXPECT_NEAR(normal(both[0]).mul(normal(both[1])).mean().item<double>(), 0, 5 / std::sqrt(4000));
}

TEST_F(Samples, NeedADistribution) {
  write_series(path("series.csv"), {3, 5});
  for (const char* const loss :
       {R"("mse")", R"({"use": "quantile", "quantiles": [0.1, 0.5, 0.9]})"}) {
    Json document = autoregression(workspace_, path("series.csv"));
    document["model"] = "linear";
    document["loss"] = Json::parse(loss);
    const Predictor predictor = trained(document);
    const auto refused = [&](const std::function<void()>& predict) {
      try {
        predict();
        ADD_FAILURE() << loss << " is no distribution";
      } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("target \"y\" is predicted by loss"));
        EXPECT_THAT(error.what(), HasSubstr("train with gaussian_nll"));
      }
    };
    refused([&] { predictor.predict_file(path("series.csv"), path("out.csv"), {}, {2, 1}); });
    refused([&] { predictor.continue_series(path("series.csv"), path("out.csv"), 2, {2, 1}); });
    refused([&] { predictor.predict(at::zeros({1, 1, 1}), {.samples = {2, 1}}); });
    EXPECT_FALSE(fs::exists(path("out.csv")));
    predictor.predict_file(path("series.csv"), path("out.csv"));
    fs::remove(path("out.csv"));
  }
}

TEST_F(Samples, AreCounted) {
  write_series(path("series.csv"), {3, 5});
  const Predictor predictor = trained(autoregression(workspace_, path("series.csv")));
  for (const std::int64_t count : {std::int64_t{-1}, SampleOptions::kMost + 1}) {
    try {
      predictor.predict(at::zeros({1, 1, 1}), {.samples = {count, 1}});
      ADD_FAILURE() << count;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("the number of samples is from 1 to 100000, got " +
                                          std::to_string(count)));
    }
  }
}

}  // namespace
}  // namespace treadle
