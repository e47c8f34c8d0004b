#include "windows.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/sequence_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

#include "step_table.h"

namespace treadle::sequences {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::gathered;
using ::testing::HasSubstr;
using testing::same;
using testing::SequenceCase;
using testing::SequenceContract;
using testing::series_data;
using Sizes = std::vector<std::int64_t>;

std::unique_ptr<SequenceProvider> make(const json& parameters) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<SequenceProvider>("windows", parameters);
}

SequenceCase case_of(std::string name, const json& parameters, bool predicts = true) {
  return {.name = std::move(name),
          .make = [parameters] { return make(parameters); },
          .predicts = predicts};
}

SequenceCase knowing_future(SequenceCase one) {
  one.knows_future = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Windows, SequenceContract,
    ::testing::Values(
        case_of("OneRow", {{"lookback", 1}}), case_of("Usual", {{"lookback", 8}}),
        case_of("Horizon", {{"lookback", 4}, {"horizon", 3}}),
        case_of("Everything", {{"lookback", 5}, {"horizon", 2}, {"stride", 4}, {"gap", 3}}),
        case_of("Targets", {{"lookback", 4}, {"horizon", 2}, {"include_targets", true}}, false),
        case_of("EvaluatesFewer", {{"lookback", 4}, {"horizon", 2}, {"evaluation_stride", 3}}),
        knowing_future(case_of("Future",
                               {{"lookback", 4}, {"horizon", 2}, {"gap", 1}, {"future", {"b"}}})),
        knowing_future(
            case_of("FutureOfAll",
                    {{"lookback", 3}, {"horizon", 3}, {"stride", 2}, {"future", {"a", "b"}}})),
        case_of("Skipping", {{"lookback", 4}, {"short_series", "skip"}})),
    CaseName());

/// The columns `2 row` and `2 row + 1` modulo something, the number `y`.
MatrixRows::Matrices table_of(std::int64_t rows, const at::Tensor& inputs,
                              const at::Tensor& targets) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {2}, {{"a"}, {"b"}}}};
  matrices.spec.targets = {treadle::number_target("y")};
  matrices.inputs = {inputs.to(at::kFloat).view({rows, 2}).contiguous()};
  matrices.targets = {targets.to(at::kFloat).view({rows, 1}).contiguous()};
  return matrices;
}

MatrixRows::Matrices counted(std::int64_t rows) {
  return table_of(rows, at::arange(2 * rows), at::arange(rows).mul(100));
}

std::string complaint_of(const json& parameters, MatrixRows::Matrices matrices) {
  const MatrixRows rows(std::move(matrices));
  try {
    make(parameters)->samples(rows);
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Printed by windows_numpy.py beside this file.
TEST(Windows, AreThoseOfNumpy) {
  const MatrixRows rows(
      table_of(12, at::arange(24).mul(7).remainder(13), at::arange(12).mul(3).remainder(7)));
  const auto samples =
      make({{"lookback", 4}, {"horizon", 2}, {"gap", 1}, {"stride", 2}})->samples(rows);

  const Batch batch = gathered(*samples, 0, samples->rows());

  const at::Tensor inputs = at::tensor({0, 7,  1, 8,  2, 9,  3, 10, 2, 9, 3, 10,  //
                                        4, 11, 5, 12, 4, 11, 5, 12, 6, 0, 7, 1},
                                       at::kFloat);
  const at::Tensor targets = at::tensor({1, 4, 0, 3, 6, 2}, at::kFloat);
  EXPECT_TRUE(same(batch.inputs[0], inputs.view({3, 4, 2}))) << batch.inputs[0];
  EXPECT_TRUE(same(batch.targets[0], targets.view({3, 2, 1}))) << batch.targets[0];
}

/// Every row asked whether a sample begins with it.
std::vector<std::int64_t> enumerated(const Sizes& groups, const WindowShape& shape,
                                     bool has_targets) {
  const auto rows = static_cast<std::int64_t>(groups.size());
  const auto group = [&](std::int64_t row) { return groups[static_cast<std::size_t>(row)]; };
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start < rows; ++start) {
    const std::int64_t needed =
        has_targets ? shape.lookback + shape.gap + shape.horizon : shape.lookback;
    if (start + needed > rows || group(start) != group(start + needed - 1))
      continue;
    std::int64_t first = start;
    while (first > 0 && group(first - 1) == group(start))
      --first;
    std::int64_t end = start;
    while (end < rows && group(end) == group(start))
      ++end;
    const std::int64_t steps = has_targets ? start - first : end - needed - start;
    if (steps % shape.stride == 0)
      starts.push_back(start);
  }
  return starts;
}

TEST(Windows, AreThoseOfBruteForce) {
  RandomBits random(11);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const auto drawn = [&](std::int64_t from, std::int64_t to) {
      return from + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(to - from)));
    };
    const WindowShape shape{drawn(1, 7), drawn(1, 5), drawn(1, 6), drawn(0, 4)};
    const bool has_targets = random.below(2) == 0;
    Sizes groups;
    for (std::int64_t group = 0, left = drawn(1, 6); group < left; ++group)
      groups.insert(groups.end(), static_cast<std::size_t>(drawn(1, 30)), group * 3);
    const auto count = static_cast<std::int64_t>(groups.size());
    MatrixRows::Matrices matrices = counted(count);
    matrices.groups = at::tensor(groups, at::kLong);
    if (!has_targets) {
      matrices.spec.targets.clear();
      matrices.targets.clear();
    }
    const MatrixRows rows(std::move(matrices));
    const std::vector<std::int64_t> expected = enumerated(groups, shape, has_targets);
    SCOPED_TRACE(round);
    const json parameters{{"lookback", shape.lookback},
                          {"horizon", shape.horizon},
                          {"stride", shape.stride},
                          {"gap", shape.gap},
                          {"short_series", "skip"}};
    if (expected.empty()) {
      EXPECT_THROW(make(parameters)->samples(rows), DataError);
      continue;
    }

    const auto samples = make(parameters)->samples(rows);
    const Batch batch = gathered(*samples, 0, samples->rows());

    ASSERT_EQ(samples->rows(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto sample = static_cast<std::int64_t>(i);
      const SourceRows source = samples->source_rows(sample);
      EXPECT_EQ(source.inputs, (RowRange{expected[i], expected[i] + shape.lookback}));
      EXPECT_EQ(samples->groups()[sample].item<std::int64_t>(),
                groups[static_cast<std::size_t>(expected[i])]);
      for (std::int64_t step = 0; step < shape.lookback; ++step) {
        for (std::int64_t column = 0; column < 2; ++column) {
          EXPECT_EQ(batch.inputs[0][sample][step][column].item<float>(),
                    static_cast<float>(2 * (expected[i] + step) + column));
        }
      }
      if (!has_targets)
        continue;
      const std::int64_t target = expected[i] + shape.lookback + shape.gap;
      EXPECT_EQ(source.targets, (RowRange{target, target + shape.horizon}));
      for (std::int64_t step = 0; step < shape.horizon; ++step) {
        EXPECT_EQ(batch.targets[0][sample][step].item<float>(),
                  static_cast<float>(100 * (target + step)));
      }
    }
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(Windows, TheShapesAreThoseOfTheGuide) {
  MatrixRows::Matrices matrices = series_data(20);
  matrices.spec.targets.push_back({"pair", TargetKind::kNumbers, {2}});
  matrices.targets.push_back(at::arange(80, at::kFloat).view({40, 2}));
  matrices.spec.targets.push_back({"tags", TargetKind::kLabels, {3}, {"p", "q", "r"}});
  matrices.targets.push_back(at::zeros({40, 3}));
  matrices.spec.targets.push_back(treadle::class_target("marks", {"no", "yes"}, {5}));
  matrices.targets.push_back(at::zeros({40, 5}, at::kLong));
  const MatrixRows rows(std::move(matrices));

  const auto one = make({{"lookback", 4}})->samples(rows);
  const auto three = make({{"lookback", 4}, {"horizon", 3}})->samples(rows);

  const auto shapes = [](const SampleReader& samples) {
    std::vector<Sizes> shapes = {samples.spec().inputs[0].shape};
    for (const TargetSpec& target : samples.spec().targets)
      shapes.push_back(target.shape);
    return shapes;
  };
  EXPECT_EQ(shapes(*one), (std::vector<Sizes>{{4, 2}, {1}, {}, {2}, {3}, {5}}));
  EXPECT_EQ(shapes(*three), (std::vector<Sizes>{{4, 2}, {3, 1}, {3}, {3, 2}, {3, 3}, {3, 5}}));
  EXPECT_EQ(one->spec().inputs[0].name, "features");
  EXPECT_EQ(one->spec().inputs[0].columns, rows.spec().inputs[0].columns);
  // Step after step: the pairs of rows 4, 5, 6.
  const Batch batch = gathered(*three, 0, 1);
  EXPECT_TRUE(same(batch.targets[2], at::arange(8, 14, at::kFloat).view({1, 3, 2})));
}

TEST(Windows, TimeWeightAndGroupAreThoseOfTheFirstRowToPredict) {
  const MatrixRows rows(series_data(20));

  const auto samples = make({{"lookback", 6}, {"gap", 1}})->samples(rows);
  const Batch batch = gathered(*samples, 0, samples->rows());

  EXPECT_EQ(samples->rows(), 26);  // 13 of each series
  for (const std::int64_t i : {0, 12, 13, 25}) {
    const std::int64_t row = samples->source_rows(i).targets.begin;
    EXPECT_EQ(samples->timestamps()[i].item<double>(), rows.timestamps()[row].item<double>());
    EXPECT_EQ(samples->groups()[i].item<std::int64_t>(), i < 13 ? 0 : 7);
    EXPECT_EQ(batch.weights[i].item<float>(), static_cast<float>(row % 5 + 1));
  }
}

TEST(Windows, RowsToPredictHaveTheirWeights) {
  MatrixRows::Matrices weighted = series_data(20);
  weighted.weights = at::arange(40, at::kFloat).remainder(5);  // some are 0
  const MatrixRows rows(std::move(weighted));

  const auto samples = make({{"lookback", 6}, {"horizon", 4}})->samples(rows);
  const Batch batch = gathered(*samples, 0, samples->rows());

  EXPECT_FALSE(samples->spec().has_weights);
  EXPECT_FALSE(batch.weights.defined());
  for (std::size_t target = 0; target < batch.targets.size(); ++target) {
    EXPECT_TRUE(same(batch.position_weights[target], samples->position_weights(target)));
    for (std::int64_t i = 0; i < samples->rows(); ++i) {
      for (std::int64_t step = 0; step < 4; ++step) {
        const std::int64_t row = samples->source_rows(i).targets.begin + step;
        EXPECT_EQ(batch.position_weights[target][i][step].reshape({-1})[0].item<float>(),
                  static_cast<float>(row % 5));
      }
    }
  }
}

TEST(Windows, OneThatEndsWithWhatIsKnownLaterCountsNowhere) {
  for (const std::int64_t horizon : {1, 3}) {
    MatrixRows::Matrices matrices = counted(12);
    matrices.timestamps = at::arange(12, at::kDouble);
    matrices.known_from = matrices.timestamps.clone();
    matrices.known_from[4].fill_(6);
    matrices.known_from[5].fill_(6);
    const MatrixRows rows(std::move(matrices));

    const auto samples = make({{"lookback", 2}, {"horizon", horizon}})->samples(rows);
    const Batch batch = gathered(*samples, 0, samples->rows());

    const at::Tensor weights = horizon == 1 ? batch.weights : batch.position_weights[0];
    for (std::int64_t i = 0; i < samples->rows(); ++i) {
      const std::int64_t last = samples->source_rows(i).inputs.end - 1;
      EXPECT_EQ(weights[i].min().item<double>(), last == 4 || last == 5 ? 0 : 1) << "row " << last;
      EXPECT_EQ(weights[i].max().item<double>(), last == 4 || last == 5 ? 0 : 1) << "row " << last;
    }
  }
}

TEST(Windows, WithoutTargetsTheTimeIsThatOfTheLastRowGiven) {
  MatrixRows::Matrices matrices = series_data(20);
  matrices.spec.targets.clear();
  matrices.targets.clear();
  const MatrixRows rows(std::move(matrices));

  const auto samples = make({{"lookback", 6}, {"horizon", 4}, {"stride", 5}})->samples(rows);

  ASSERT_EQ(samples->rows(), 6);  // of each series those that end with row 9, 14 and 19
  EXPECT_EQ(samples->source_rows(0).inputs, (RowRange{4, 10}));
  EXPECT_EQ(samples->source_rows(5).inputs, (RowRange{34, 40}));
  EXPECT_EQ(samples->timestamps()[0].item<double>(), 4.5);
  EXPECT_EQ(samples->timestamps()[5].item<double>(), 9.5);
  EXPECT_EQ(samples->describe_row(5), "sample 5 (rows 34-39)");
}

TEST(Windows, DescribesASampleByItsRows) {
  const MatrixRows rows(counted(200));

  const auto day = make({{"lookback", 96}, {"horizon", 24}})->samples(rows);
  const auto shortest = make({{"lookback", 1}})->samples(rows);

  EXPECT_EQ(day->describe_row(41), "sample 41 (rows 41-136, target rows 137-160)");
  EXPECT_EQ(shortest->describe_row(3), "sample 3 (row 3, target row 4)");
}

TEST(Windows, TargetsOfThePastStandBehindTheColumns) {
  const MatrixRows rows(counted(5));

  const auto samples = make({{"lookback", 2}, {"include_targets", true}})->samples(rows);
  const Batch batch = gathered(*samples, 1, 2);

  EXPECT_EQ(samples->spec().inputs[0].shape, (Sizes{2, 3}));
  const at::Tensor expected = at::tensor({2, 3, 100, 4, 5, 200}, at::kFloat);
  EXPECT_TRUE(same(batch.inputs[0], expected.view({1, 2, 3})));
  EXPECT_EQ(batch.targets[0].item<float>(), 300);
}

TEST(Windows, TakesATableWithoutNamesOfColumns) {
  MatrixRows::Matrices matrices = counted(5);
  matrices.spec.inputs[0].columns.clear();
  const MatrixRows rows(std::move(matrices));

  EXPECT_EQ(make({{"lookback", 2}})->samples(rows)->rows(), 3);
}

TEST(Windows, SaysHowManyRowsASampleNeeds) {
  const json day{{"lookback", 96}, {"horizon", 24}, {"gap", 2}};
  EXPECT_EQ(complaint_of(day, counted(100)),
            "there are 100 rows, and a sample of the sequence windows needs 122 (lookback 96 + gap "
            "2 + horizon 24); shorten the windows");

  MatrixRows::Matrices grouped = counted(10);
  grouped.groups = at::arange(10, at::kLong).ge(7).to(at::kLong);
  EXPECT_EQ(complaint_of({{"lookback", 4}}, grouped),
            "row 7: a group of 3 rows begins here, and a sample of the sequence windows needs 5 "
            "(lookback 4 + horizon 1); shorten the windows, or set \"short_series\": \"skip\"");
  const MatrixRows rows(grouped);
  EXPECT_EQ(make({{"lookback", 4}, {"short_series", "skip"}})->samples(rows)->rows(), 3);
  EXPECT_EQ(complaint_of({{"lookback", 8}, {"short_series", "skip"}}, grouped),
            "no group has the 9 rows that a sample of the sequence windows needs (lookback 8 + "
            "horizon 1)");
}

TEST(Windows, NamesTheRowThatIsOutOfOrder) {
  MatrixRows::Matrices late = counted(6);
  late.timestamps = at::tensor({1.0, 2.0, 4.0, 3.0, 5.0, 6.0}, at::kDouble);
  MatrixRows::Matrices twice = counted(6);
  twice.timestamps = at::tensor({1.0, 1.0, 2.0, 2.0, 3.0, 3.0}, at::kDouble);
  MatrixRows::Matrices torn = counted(6);
  torn.groups = at::tensor({1, 1, 2, 2, 1, 1}, at::kLong);
  const json two{{"lookback", 1}};

  EXPECT_EQ(complaint_of(two, late),
            "row 3: its time is before that of the row above, and times must rise within a series; "
            "sort the rows by time, or name the column that tells several series apart as the "
            "data's group");
  EXPECT_THAT(complaint_of(two, twice), HasSubstr("row 1: its time is that of the row above"));
  EXPECT_EQ(complaint_of(two, torn),
            "row 4: its group began earlier, and rows of another one lie between; sort the rows by "
            "group, then by time");
}

TEST(Windows, SaysWhichDataItTakes) {
  const json two{{"lookback", 2}};
  MatrixRows::Matrices images = counted(6);
  images.spec.inputs = {{"picture", {1, 2}}};
  images.inputs[0] = images.inputs[0].view({6, 1, 2});
  MatrixRows::Matrices missing = counted(6);
  missing.spec.inputs[0].columns[1].may_be_missing = true;
  missing.inputs[0][3][1] = std::nan("");
  MatrixRows::Matrices weighed = counted(6);
  weighed.position_weights = {at::zeros({6})};

  EXPECT_EQ(complaint_of(two, images),
            "the sequence windows takes tables of numbers and categories, and input \"picture\" is "
            "none: a row has shape {1, 2}");
  EXPECT_EQ(complaint_of(two, missing),
            "row 3: the value of column \"b\" is missing, and no transform can fill it in windows; "
            "fill it in the data, or leave the column out of the inputs");
  EXPECT_THAT(complaint_of(two, weighed), HasSubstr("target \"y\" has weights of positions"));
}

TEST(Windows, PastTargetsNeedTargetsThatAreNumbers) {
  const json past{{"lookback", 2}, {"include_targets", true}};
  MatrixRows::Matrices bare = counted(6);
  bare.spec.targets.clear();
  bare.targets.clear();
  MatrixRows::Matrices classes = counted(6);
  classes.spec.targets = {treadle::class_target("kind", {"a", "b"})};
  classes.targets = {at::zeros({6}, at::kLong)};

  EXPECT_THAT(complaint_of(past, bare), HasSubstr("these rows have no targets"));
  EXPECT_THAT(complaint_of(past, classes), HasSubstr("no target is a number"));
}

/// Rows of which nobody knows where they lie.
class Elsewhere final : public RowReader {
 public:
  explicit Elsewhere(const MatrixRows& rows) : rows_(rows) {}

 private:
  const DataSpec& do_spec() const override { return rows_.spec(); }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    rows_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return rows_.targets(target); }
  at::Tensor do_groups() const override { return rows_.groups(); }
  at::Tensor do_timestamps() const override { return rows_.timestamps(); }
  std::string do_describe_row(std::int64_t row) const override { return rows_.describe_row(row); }

  const MatrixRows& rows_;
};

void expect_same_samples(const SampleReader& one, const SampleReader& other) {
  ASSERT_EQ(one.rows(), other.rows());
  const std::vector<std::int64_t> some{one.rows() - 1, 0, one.rows() / 2, 0};
  Batch first;
  Batch second;
  one.gather(some, first);
  other.gather(some, second);
  ASSERT_EQ(first.inputs.size(), second.inputs.size());
  for (std::size_t input = 0; input < first.inputs.size(); ++input)
    EXPECT_TRUE(same(first.inputs[input], second.inputs[input])) << input;
  for (std::size_t target = 0; target < first.targets.size(); ++target) {
    EXPECT_TRUE(same(first.targets[target], second.targets[target]));
    EXPECT_TRUE(same(one.targets(target), other.targets(target)));
  }
  EXPECT_EQ(first.weights.defined(), second.weights.defined());
  if (first.weights.defined()) {
    EXPECT_TRUE(same(first.weights, second.weights));
  }
}

TEST(Windows, AreTheSameWhereverTheRowsLie) {
  const MatrixRows here(series_data(30));
  const Elsewhere elsewhere(here);
  // Too large to be copied.
  MatrixRows::Matrices large = counted(40);
  const std::int64_t width = StepTable::kMostCopied / 40 / 4 + 1;
  large.spec.inputs[0] = {"features", {width}};
  for (std::int64_t i = 0; i < width; ++i)
    large.spec.inputs[0].columns.push_back({i == 0 ? "a" : i == 1 ? "b" : std::to_string(i)});
  large.inputs[0] = at::randn({40, width});
  const MatrixRows large_here(std::move(large));
  const Elsewhere large_elsewhere(large_here);
  for (const json& parameters :
       {json{{"lookback", 5}}, json{{"lookback", 4}, {"horizon", 3}, {"gap", 2}, {"stride", 3}},
        json{{"lookback", 3}, {"horizon", 2}, {"include_targets", true}},
        json{{"lookback", 3}, {"horizon", 2}, {"future", {"b"}}}}) {
    SCOPED_TRACE(parameters.dump());
    expect_same_samples(*make(parameters)->samples(here), *make(parameters)->samples(elsewhere));
    expect_same_samples(*make(parameters)->samples(large_here),
                        *make(parameters)->samples(large_elsewhere));
  }
}

/// Two series of five rows: the numbers "known", "own" (100 · row + column) and "of_series", and
/// the categories "shop" and "day".
MatrixRows::Matrices shops() {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {3}, {{"known"}, {"own"}, {"of_series"}}},
                          {"categories",
                           {2},
                           {{"shop", {"ulm", "bonn"}}, {"day", {"mo", "tu"}}},
                           Role::kCategories,
                           at::kLong}};
  matrices.spec.targets = {treadle::number_target("y")};
  const at::Tensor rows = at::arange(10, at::kFloat);
  matrices.inputs = {
      at::stack({rows * 100, rows * 100 + 1, rows.div(5).floor().mul(7)}, 1),
      at::stack({rows.div(5).floor().to(at::kLong), rows.to(at::kLong).remainder(2)}, 1)};
  matrices.targets = {rows.mul(-1).view({10, 1}).contiguous()};
  matrices.groups = rows.div(5).floor().to(at::kLong);
  return matrices;
}

const json& of_shops() {
  static const json parameters{{"lookback", 2},
                               {"horizon", 2},
                               {"future", {"known", "day"}},
                               {"static", {"of_series", "shop"}}};
  return parameters;
}

TEST(Windows, ColumnsKnownInAdvanceAndStaticOnesAreInputsOfTheirOwn) {
  const MatrixRows rows(shops());
  const auto samples = make(of_shops())->samples(rows);
  const std::vector<PortSpec>& ports = samples->spec().inputs;
  const auto columns_of = [&](std::size_t port) {
    std::vector<std::string> names;
    for (const Column& column : ports[port].columns)
      names.push_back(column.name);
    return names;
  };

  const Batch batch = gathered(*samples, 0, samples->rows());

  ASSERT_EQ(samples->rows(), 4);  // two of each series: rows 0-3, 1-4, 5-8, 6-9
  ASSERT_EQ(ports.size(), 6U);
  EXPECT_EQ(ports[0].name, "features");
  EXPECT_EQ(columns_of(0), (std::vector<std::string>{"known", "own"}));
  EXPECT_EQ(ports[1].name, "categories");
  EXPECT_EQ(columns_of(1), (std::vector<std::string>{"day"}));
  EXPECT_EQ(ports[1].columns[0].categories, (std::vector<std::string>{"mo", "tu"}));
  EXPECT_EQ(ports[2].name, "future");
  EXPECT_EQ(ports[2].shape, (Sizes{2, 1}));
  EXPECT_EQ(ports[3].name, "future.categories");
  EXPECT_EQ(ports[4].name, "static");
  EXPECT_EQ(ports[4].shape, (Sizes{1}));
  EXPECT_EQ(ports[5].name, "static.categories");
  EXPECT_EQ(columns_of(5), (std::vector<std::string>{"shop"}));
  EXPECT_TRUE(
      same(batch.inputs[0][2].flatten(), at::tensor({500., 501., 600., 601.}).to(at::kFloat)));
  EXPECT_TRUE(same(batch.inputs[1][2].flatten(), at::tensor({1, 0}, at::kLong)));
  EXPECT_TRUE(same(batch.inputs[2][2].flatten(), at::tensor({700., 800.}).to(at::kFloat)));
  EXPECT_TRUE(same(batch.inputs[3][2].flatten(), at::tensor({1, 0}, at::kLong)));
  EXPECT_TRUE(same(batch.inputs[4].flatten(), at::tensor({0., 0., 7., 7.}).to(at::kFloat)));
  EXPECT_TRUE(same(batch.inputs[5].flatten(), at::tensor({0, 0, 1, 1}, at::kLong)));
}

// Rows to predict have what is known in advance; what else they have is not there yet.
TEST(Windows, PredictOnRowsOfWhichOnlyColumnsKnownInAdvanceAreThere) {
  MatrixRows::Matrices bare = shops();
  bare.spec.targets.clear();
  bare.targets.clear();
  bare.spec.inputs[0].columns[1].may_be_missing = true;
  const auto missing_in = [&](std::int64_t row, std::int64_t column) {
    MatrixRows::Matrices matrices = bare;
    matrices.inputs[0] = bare.inputs[0].clone();
    matrices.inputs[0][row][column] = std::nan("");
    return matrices;
  };
  json last = of_shops();
  last["stride"] = 2;  // one of each series: it ends with the last row

  const MatrixRows rows(missing_in(9, 1));
  const auto samples = make(last)->samples(rows);

  ASSERT_EQ(samples->rows(), 2);
  EXPECT_EQ(samples->source_rows(1).targets, (RowRange{8, 10}));
  EXPECT_TRUE(samples->spec().inputs[0].columns[1].may_be_missing == false);
  EXPECT_TRUE(same(gathered(*samples, 1, 2).inputs[2].flatten(), at::tensor({800.f, 900.f})));
  EXPECT_THAT(complaint_of(last, missing_in(7, 1)),
              HasSubstr("row 7: the value of column \"own\" is missing"));
}

TEST(Windows, NameTheColumnsThatCannotBeInputsOfTheirOwn) {
  MatrixRows::Matrices changing = shops();
  changing.inputs[0] = changing.inputs[0].clone();
  changing.inputs[0][8][2] = 3;
  MatrixRows::Matrices taken = shops();
  taken.spec.inputs[1].name = "static";
  json both = of_shops();
  both["future"].push_back("shop");

  EXPECT_EQ(complaint_of({{"lookback", 2}, {"future", {"Known"}}}, shops()),
            "\"future\" of the sequence windows: no input has a column \"Known\"; the columns are "
            "\"known\", \"own\", \"of_series\", \"shop\", \"day\"; did you mean \"known\"?");
  EXPECT_THAT(complaint_of({{"lookback", 2}, {"static", {"x"}}}, counted(6)),
              HasSubstr("\"static\" of the sequence windows: no input has a column \"x\""));
  EXPECT_THAT(complaint_of(both, shops()), HasSubstr("column \"shop\" is named in"));
  EXPECT_EQ(
      complaint_of(of_shops(), changing),
      "row 8: column \"of_series\" has another value than in the row above, and it is named in "
      "\"static\" of the sequence windows; static columns are the same in all rows of a "
      "series");
  EXPECT_THAT(complaint_of(of_shops(), taken), HasSubstr("adds an input \"static\""));
}

TEST(Windows, TargetsOfOneSeriesAreViewsOfTheRows) {
  const MatrixRows rows(counted(50));
  const auto samples = make({{"lookback", 4}, {"horizon", 3}, {"stride", 2}})->samples(rows);

  const at::Tensor targets = samples->targets();

  EXPECT_EQ(targets.data_ptr<float>(), rows.targets().data_ptr<float>() + 4);
  EXPECT_TRUE(same(targets.contiguous(), gathered(*samples, 0, samples->rows()).targets[0]));
}

}  // namespace
}  // namespace treadle::sequences
