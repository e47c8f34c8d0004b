#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/cross_validator.h>
#include <treadle/testing/case_name.h>

/// What every CrossValidator must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Validation, ValidationContract, ::testing::Values(
///         ValidationCase{"KFold", [] { return plugin().make<CrossValidator>("k_fold"); }}),
///         CaseName());
namespace treadle::testing {

struct ValidationCase {
  std::string name;
  std::function<std::unique_ptr<CrossValidator>()> make;
  /// Each row that is not set aside for the test validates in exactly one fold.
  bool covers_every_row = true;
  /// Another seed gives another plan.
  bool is_random = true;
  /// Works on number targets as well as on classes.
  bool takes_numbers = true;
  /// Each part of a fold has its share of each class, within a row; so have the test rows.
  bool stratifies = false;
  /// Rows of one group are never on both sides of a fold, nor in a fold and in the test.
  bool keeps_groups = false;
  /// Rows are in the order of time, not of their numbers: training is before validation, and the
  /// test after both.
  bool orders_by_time = false;
  /// It was asked for test rows.
  bool has_test_rows = false;
};

class ValidationContract : public ::testing::TestWithParam<ValidationCase> {
 protected:
  static constexpr std::int64_t kRows = 83;

  /// Three classes, not in order; timestamps that run backwards.
  static SplitRequest classes(std::uint64_t seed = 3) {
    SplitRequest request;
    request.rows = kRows;
    request.targets = {treadle::class_target("kind", {"common", "usual", "rare"})};
    const at::Tensor rows = at::arange(kRows, at::kLong);
    request.target_values = {rows.mul(7).remainder(10).sub(6).clamp(0, 2)};
    request.timestamps = rows.neg().to(at::kDouble);
    request.groups = rows.remainder(20);
    request.random = RandomStreams(seed);
    return request;
  }
  static SplitRequest numbers(std::uint64_t seed = 3) {
    SplitRequest request = classes(seed);
    request.targets = {treadle::number_target("price")};
    request.target_values = {at::arange(kRows, at::kFloat).view({kRows, 1})};
    return request;
  }
  /// A number and the classes of three time steps beside the classes of the rows.
  static SplitRequest several(std::uint64_t seed = 3) {
    SplitRequest request = classes(seed);
    const SplitRequest other = numbers(seed);
    request.targets.insert(request.targets.begin(), other.targets[0]);
    request.target_values.insert(request.target_values.begin(), other.target_values[0]);
    request.targets.push_back(treadle::class_target("steps", {"up", "down"}, {3}));
    request.target_values.push_back(at::arange(kRows * 3).remainder(2).view({kRows, 3}));
    return request;
  }
  static std::vector<SplitRequest> requests() {
    std::vector<SplitRequest> requests = {classes(), several()};
    if (GetParam().takes_numbers)
      requests.push_back(numbers());
    return requests;
  }

  static void expect_same(const ValidationPlan& got, const ValidationPlan& expected) {
    EXPECT_EQ(got.refit, expected.refit);
    EXPECT_EQ(got.test, expected.test);
    ASSERT_EQ(got.folds.size(), expected.folds.size());
    for (std::size_t i = 0; i < got.folds.size(); ++i) {
      EXPECT_EQ(got.folds[i].name, expected.folds[i].name);
      EXPECT_EQ(got.folds[i].training, expected.folds[i].training);
      EXPECT_EQ(got.folds[i].validation, expected.folds[i].validation);
    }
  }

  const std::unique_ptr<CrossValidator> validator_ = GetParam().make();
};

TEST_P(ValidationContract, NoRowTrainsAndValidatesInOneFold) {
  for (const SplitRequest& request : requests()) {
    for (const Fold& fold : validator_->plan(request).folds) {
      std::vector<int> uses(kRows, 0);
      for (const std::int64_t row : fold.training)
        ++uses.at(static_cast<std::size_t>(row));
      for (const std::int64_t row : fold.validation)
        ++uses.at(static_cast<std::size_t>(row));
      EXPECT_LE(*std::max_element(uses.begin(), uses.end()), 1) << fold.name;
      EXPECT_FALSE(fold.training.empty()) << fold.name;
      EXPECT_FALSE(fold.validation.empty()) << fold.name;
    }
  }
}

TEST_P(ValidationContract, EachRowValidatesAsOftenAsItShould) {
  for (const SplitRequest& request : requests()) {
    std::vector<int> uses(kRows, 0);
    for (const Fold& fold : validator_->plan(request).folds) {
      for (const std::int64_t row : fold.validation)
        ++uses.at(static_cast<std::size_t>(row));
    }
    const auto once = std::count(uses.begin(), uses.end(), 1);
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 0) + once, kRows);
    const auto aside = static_cast<std::int64_t>(validator_->plan(request).test.size());
    EXPECT_EQ(once + aside == kRows, GetParam().covers_every_row);
  }
}

TEST_P(ValidationContract, SetsTestRowsAsideIfItWasAskedTo) {
  for (const SplitRequest& request : requests())
    EXPECT_EQ(!validator_->plan(request).test.empty(), GetParam().has_test_rows);
}

TEST_P(ValidationContract, TestRowsNeitherTrainNorValidate) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan plan = validator_->plan(request);
    std::set<std::int64_t> test(plan.test.begin(), plan.test.end());
    EXPECT_EQ(test.size(), plan.test.size()) << "a row is set aside twice";
    for (const Fold& fold : plan.folds) {
      for (const auto* const part : {&fold.training, &fold.validation}) {
        for (const std::int64_t row : *part)
          EXPECT_EQ(test.count(row), 0U) << fold.name << ", row " << row;
      }
    }
  }
}

TEST_P(ValidationContract, FoldsHaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const Fold& fold : validator_->plan(classes()).folds)
    names.push_back(fold.name);

  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_NE(names.front(), "");
}

TEST_P(ValidationContract, RowsAreInOrder) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan plan = validator_->plan(request);
    const auto is_earlier = [&](std::int64_t a, std::int64_t b) {
      return request.timestamps[a].item<double>() < request.timestamps[b].item<double>();
    };
    EXPECT_TRUE(std::is_sorted(plan.test.begin(), plan.test.end()) ||
                std::is_sorted(plan.test.begin(), plan.test.end(), is_earlier))
        << "the test rows are neither in their own order nor in that of time";
    for (const Fold& fold : plan.folds) {
      if (GetParam().orders_by_time) {
        const auto times = [&](const std::vector<std::int64_t>& rows) {
          return request.timestamps.index_select(0, at::tensor(rows));
        };
        EXPECT_LE(times(fold.training).max().item<double>(),
                  times(fold.validation).min().item<double>())
            << fold.name << " trains on rows that come after those it validates on";
        if (!plan.test.empty()) {
          EXPECT_LE(times(fold.validation).max().item<double>(),
                    times(plan.test).min().item<double>())
              << fold.name << " validates on rows that come after those of the test";
        }
      } else {
        EXPECT_TRUE(std::is_sorted(fold.training.begin(), fold.training.end())) << fold.name;
        EXPECT_TRUE(std::is_sorted(fold.validation.begin(), fold.validation.end())) << fold.name;
      }
    }
  }
}

TEST_P(ValidationContract, ClassesHaveTheirShareIfItSaysSo) {
  if (!GetParam().stratifies)
    return;
  const SplitRequest request = classes();
  const auto expect_shares = [&](const std::string& name, const std::vector<std::int64_t>& part,
                                 const std::vector<std::int64_t>& rest) {
    const auto share =
        static_cast<double>(part.size()) / static_cast<double>(part.size() + rest.size());
    for (std::int64_t c = 0; c < request.targets[0].class_count(); ++c) {
      const auto count = [&](const std::vector<std::int64_t>& rows) {
        return request.target_values[0]
            .index_select(0, at::tensor(rows))
            .eq(c)
            .sum()
            .item<double>();
      };
      const double here = count(part);
      const double all = here + count(rest);
      EXPECT_LE(std::abs(here - share * all), 1.0 + 1e-9) << name << ", class " << c;
    }
  };
  const ValidationPlan plan = validator_->plan(request);
  for (const Fold& fold : plan.folds)
    expect_shares(fold.name, fold.validation, fold.training);
  if (plan.test.empty())
    return;
  std::vector<std::int64_t> rest = plan.folds[0].training;
  rest.insert(rest.end(), plan.folds[0].validation.begin(), plan.folds[0].validation.end());
  expect_shares("test", plan.test, rest);
}

TEST_P(ValidationContract, GroupsStayTogetherIfItSaysSo) {
  if (!GetParam().keeps_groups)
    return;
  for (const SplitRequest& request : requests()) {
    const auto groups_of = [&](const std::vector<std::int64_t>& rows) {
      std::set<std::int64_t> groups;
      for (const std::int64_t row : rows)
        groups.insert(request.groups[row].item<std::int64_t>());
      return groups;
    };
    const ValidationPlan plan = validator_->plan(request);
    for (const Fold& fold : plan.folds) {
      const std::set<std::int64_t> training = groups_of(fold.training);
      const std::set<std::int64_t> validation = groups_of(fold.validation);
      for (const std::int64_t group : validation)
        EXPECT_EQ(training.count(group), 0U) << fold.name << ", group " << group;
      for (const std::int64_t group : groups_of(plan.test)) {
        EXPECT_EQ(training.count(group) + validation.count(group), 0U)
            << fold.name << " and the test, group " << group;
      }
    }
  }
}

TEST_P(ValidationContract, SplitsDataWithoutGroupsAndTimesOrSaysWhatItNeeds) {
  for (SplitRequest request : requests()) {
    request.groups = at::Tensor();
    request.timestamps = at::Tensor();
    try {
      EXPECT_FALSE(validator_->plan(request).folds.empty());
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

TEST_P(ValidationContract, SplitsFewRowsOrSaysWhyItCannot) {
  for (std::int64_t rows = 2; rows < 12; ++rows) {
    SplitRequest request = classes();
    request.rows = rows;
    for (at::Tensor* of_rows : {&request.target_values[0], &request.groups, &request.timestamps})
      *of_rows = of_rows->slice(0, 0, rows);
    try {
      EXPECT_FALSE(validator_->plan(request).folds.empty());
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
}

TEST_P(ValidationContract, ThePlanIsAFunctionOfTheRequest) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan first = validator_->plan(request);
    validator_->plan(classes(99));

    expect_same(validator_->plan(request), first);
    expect_same(GetParam().make()->plan(request), first);
  }
}

TEST_P(ValidationContract, TheSeedDecidesWhatIsRandom) {
  const ValidationPlan one = validator_->plan(classes(1));
  const ValidationPlan other = validator_->plan(classes(2));

  EXPECT_EQ(one.folds[0].validation != other.folds[0].validation, GetParam().is_random);
}

TEST_P(ValidationContract, DoesNotWriteToTheTargets) {
  const SplitRequest request = classes();
  const at::Tensor targets = request.target_values[0].clone();
  const at::Tensor timestamps = request.timestamps.clone();
  const at::Tensor groups = request.groups.clone();

  validator_->plan(request);

  EXPECT_TRUE(request.groups.equal(groups));
  EXPECT_TRUE(request.target_values[0].equal(targets));
  EXPECT_TRUE(request.timestamps.equal(timestamps));
}

TEST_P(ValidationContract, RefusesDataWithOneRow) {
  SplitRequest request = classes();
  request.rows = 1;
  request.target_values[0] = request.target_values[0].slice(0, 0, 1);

  EXPECT_THROW(validator_->plan(request), DataError);
}

}  // namespace treadle::testing
