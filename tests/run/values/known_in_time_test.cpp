// What a sample is given was known before what it predicts (column_origins.h). The oracle does not
// look at origins: an input holds an answer where it changes with the target's later values.
#include <treadle/core/data/column_origins.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/testing/support/expect_problem.h>

#include "watched_runs.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A series with lags and differences, and windows of it.
struct Plan {
  json series;
  json windows;
  std::int64_t history = 0;  ///< steps that the longest lag leaves out
};

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {}

  Plan plan() {
    Plan plan;
    json lags = json::array();
    json differences = json::array();
    std::vector<std::string> columns{"x"};
    const bool takes_target = one_of(2) == 0;
    const char* const given = takes_target ? "y" : "x";
    if (takes_target)
      columns.emplace_back("y");
    const json inputs = columns;
    for (json* const list : {&lags, &differences}) {
      if (one_of(3) == 0)
        continue;
      const std::string column = one_of(3) == 0 ? "x" : given;
      const std::int64_t steps = 1 + one_of(8);
      list->push_back({{"column", column}, {"steps", {steps}}});
      columns.push_back(column + (list == &lags ? "_lag_" : "_diff_") + std::to_string(steps));
      plan.history = std::max(plan.history, steps);
    }
    plan.series = {
        {"use", "series"},
        {"source", {{"use", "csv"}, {"time", "t"}, {"target", "y"}, {"columns", inputs}}},
        {"lags", lags},
        {"differences", differences}};
    plan.windows = {{"use", "windows"},         {"lookback", 1 + one_of(5)},
                    {"horizon", 1 + one_of(4)}, {"gap", one_of(3)},
                    {"stride", 1 + one_of(3)},  {"include_targets", one_of(4) == 0}};
    json future = json::array();
    for (const std::string& column : columns) {
      if (one_of(3) == 0)
        future.push_back(column);
    }
    if (!future.empty())
      plan.windows["future"] = future;
    return plan;
  }

 private:
  std::int64_t one_of(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }
  std::mt19937_64 random_;
};

class KnownInTime : public ::testing::Test {
 protected:
  /// The target of rows from `changed` on is another one.
  std::string file(const std::string& name, std::int64_t changed) const {
    std::mt19937 random(5);
    std::ofstream out(workspace_.folder() / name);
    out << "t,x,y\n";
    for (std::int64_t row = 0; row < 40; ++row) {
      const auto x = static_cast<double>(random() % 1000);
      const auto y = static_cast<double>(random() % 1000);
      out << row << ',' << x << ',' << (row < changed ? y : y + 5000.25 * static_cast<double>(row))
          << '\n';
    }
    return (workspace_.folder() / name).string();
  }

  /// The same without some rows, which `fill` makes up for.
  std::string file_with_gaps(const std::string& name, std::int64_t changed,
                             std::uint64_t seed) const {
    const fs::path path = file(name, changed);
    std::ifstream in(path);
    std::mt19937_64 random(seed);
    std::string kept;
    std::string line;
    for (std::int64_t number = 0; std::getline(in, line); ++number) {
      if (number <= 1 || number == 40 || random() % 3 != 0)
        kept += line + "\n";
    }
    in.close();
    std::ofstream(path) << kept;
    return path.string();
  }

  std::unique_ptr<DataProvider> data(json series, const std::string& path) const {
    series["source"]["path"] = path;
    series.erase("use");
    auto data = runtime_.registry().make<DataProvider>("series", Config(series, "/data"));
    data->open({});
    return data;
  }
  std::unique_ptr<SampleReader> samples(const json& windows, const DataProvider& data) const {
    json parameters = windows;
    parameters.erase("use");
    return runtime_.registry()
        .make<SequenceProvider>("windows", Config(parameters, "/sequence"))
        ->samples(*data.ask<RowReader>());
  }

  /// Of the first sample.
  std::vector<at::Tensor> inputs_of(const Plan& plan, const std::string& path) const {
    const auto opened = data(plan.series, path);
    const auto windows = samples(plan.windows, *opened);
    Batch batch;
    windows->gather(std::vector<std::int64_t>{0}, batch);
    std::vector<at::Tensor> copies;
    for (const at::Tensor& input : batch.inputs)
      copies.push_back(input.clone());
    return copies;
  }

  bool holds_answers(const Plan& plan) const {
    const std::int64_t known = plan.history + plan.windows.at("lookback").get<std::int64_t>();
    const auto given = inputs_of(plan, file("same.csv", 1000));
    const auto with_others = inputs_of(plan, file("other.csv", known));
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!at::equal(given[i], with_others[i]))
        return true;
    }
    return false;
  }

  std::string refusal(const Plan& plan) const {
    const auto opened = data(plan.series, file("same.csv", 1000));
    const auto windows = samples(plan.windows, *opened);
    try {
      expect_no_answers(*windows, *opened->ask<ColumnOrigins>());
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  const Workspace workspace_;
  const Runtime runtime_ = watching_runtime();
};

TEST_F(KnownInTime, RefusesExactlyTheInputsThatChangeWithLaterTargets) {
  int refused = 0;
  int taken = 0;
  const char* const count = std::getenv("TREADLE_PLANS");
  const std::uint64_t plans = count == nullptr ? 600 : std::stoull(count);
  for (std::uint64_t seed = 0; seed < plans; ++seed) {
    const Plan plan = Drawn(seed).plan();
    const std::string said = refusal(plan);
    ASSERT_EQ(!said.empty(), holds_answers(plan)) << plan.series << plan.windows << said;
    ++(said.empty() ? taken : refused);
  }
  RecordProperty("refused", refused);
  RecordProperty("taken", taken);
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

// Steps that are made up are those of the rows around them, but a sample that counts is given
// nothing of what it is to predict, and none is judged by them.
TEST_F(KnownInTime, NoSampleThatCountsIsGivenOrJudgedByWhatIsMadeUpFromLaterRows) {
  std::int64_t counted = 0;
  std::int64_t uncounted = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Plan plan = Drawn(seed).plan();
    plan.series["frequency"] = 1;
    plan.series["fill"] = seed % 2 == 0 ? "linear" : "forward";
    if (!refusal(plan).empty())
      continue;
    const auto opened = data(plan.series, file_with_gaps("gaps.csv", 1000, seed));
    const auto windows = samples(plan.windows, *opened);
    const RowReader& steps = *opened->ask<RowReader>();
    for (std::int64_t sample = 0; sample < windows->rows(); sample += 3) {
      Batch given;
      windows->gather(std::vector<std::int64_t>{sample}, given);
      const auto horizon = plan.windows.at("horizon").get<std::int64_t>();
      const at::Tensor weights =
          (horizon == 1 ? given.weights : given.position_weights.at(0)).reshape({-1});
      const RowRange targets = windows->source_rows(sample).targets;
      for (std::int64_t step = 0; step < horizon; ++step) {
        if (steps.describe_row(targets.begin + step).starts_with("filled")) {
          EXPECT_EQ(weights[step].item<double>(), 0);
        }
      }
      if (weights.max().item<double>() == 0) {
        ++uncounted;
        continue;
      }
      ++counted;
      const RowRange inputs = windows->source_rows(sample).inputs;
      const auto last =
          static_cast<std::int64_t>(steps.timestamps()[inputs.end - 1].item<double>());
      const auto other = data(plan.series, file_with_gaps("other.csv", last + 1, seed));
      Batch with_others;
      samples(plan.windows, *other)->gather(std::vector<std::int64_t>{sample}, with_others);
      for (std::size_t i = 0; i < given.inputs.size(); ++i)
        ASSERT_TRUE(at::equal(given.inputs[i], with_others.inputs[i]))
            << plan.series << plan.windows << " sample " << sample;
    }
  }
  EXPECT_GT(counted, 100);
  EXPECT_GT(uncounted, 20);
}

TEST_F(KnownInTime, NamesColumnStepAndSample) {
  Plan plan;
  plan.series = {
      {"use", "series"},
      {"source", {{"use", "csv"}, {"time", "t"}, {"target", "y"}, {"columns", {"x", "y"}}}},
      {"lags", {{{"column", "y"}, {"steps", {3}}}}}};
  plan.windows = {{"lookback", 4}, {"horizon", 4}, {"gap", 1}, {"future", {"x", "y_lag_3"}}};

  EXPECT_EQ(
      refusal(plan),
      "input \"future\" has column \"y_lag_3\", which is made of target \"y\", 3 steps before "
      "its own: sample 0 (rows 0-3, target rows 5-8), step 3 of 4, would hold what is to be "
      "predicted, and so would all others; leave the column out of this input, or take its "
      "value at least 5 steps before");
}

TEST_F(KnownInTime, ARunOfRowsIsRefusedAndOneThatReconstructsItsTargetsIsNot) {
  json document = {
      {"treadle", 1},
      {"data",
       {{"use", "csv"}, {"path", file("a.csv", 1000)}, {"target", "y"}, {"columns", {"x", "y"}}}},
      {"model", "linear"},
      {"training", {{"epochs", 1}}}};
  const auto run = [&] {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  };

  expect_problem(run, ErrorKind::kData, "input \"features\"",
                 {"column \"y\"", "made of target \"y\" at its own step", "a.csv:2"});
  document["data"]["columns"] = {"y"};
  EXPECT_NO_THROW(run());
}

}  // namespace
}  // namespace treadle::testing
