#include <treadle/testing/data/validation_contract.h>

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
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/set_aside.h>
#include <treadle/testing/component/case_name.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class ValidationClaims : public ::testing::WithParamInterface<ValidationCase> {
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
  /// Two rows of every sixth time, from row `shift` on.
  static SplitRequest shared_times(std::int64_t shift) {
    SplitRequest request = classes();
    const at::Tensor places = at::arange(kRows, at::kLong).add(shift);
    request.timestamps = places.div(kSharing, "floor").sub(places).to(at::kDouble);
    return request;
  }
  static constexpr std::int64_t kSharing = 7;
  static std::vector<SplitRequest> requests() {
    std::vector<SplitRequest> requests = {classes(), several()};
    for (std::int64_t shift = 0; GetParam().orders_by_time && shift < kSharing; ++shift)
      requests.push_back(shared_times(shift));
    if (GetParam().takes_numbers)
      requests.push_back(numbers());
    return requests;
  }

  using Rows = RowList;

  static void expect_same(const std::vector<Fold>& got, const std::vector<Fold>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].name, expected[i].name);
      EXPECT_EQ(got[i].training, expected[i].training);
      EXPECT_EQ(got[i].validation, expected[i].validation);
      EXPECT_EQ(got[i].test, expected[i].test);
      EXPECT_EQ(got[i].starts_from, expected[i].starts_from);
      expect_same(got[i].inner, expected[i].inner);
    }
  }
  static void expect_same(const ValidationPlan& got, const ValidationPlan& expected) {
    expect_same(got.folds, expected.folds);
    ASSERT_EQ(got.refit.has_value(), expected.refit.has_value());
    if (got.refit)
      expect_same(std::vector{*got.refit}, std::vector{*expected.refit});
  }
  /// What the run's model is tested on.
  static Rows test_rows(const ValidationPlan& plan) {
    if (plan.refit)
      return plan.refit->test;
    return plan.folds.size() == 1 ? plan.folds.front().test : Rows();
  }
  /// What a fold is judged by, beside the rows of test_rows().
  static const Rows& judged(const ValidationPlan& plan, const Fold& fold) {
    const bool is_single = !plan.refit && plan.folds.size() == 1;
    return fold.test.empty() || is_single ? fold.validation : fold.test;
  }

  const std::unique_ptr<CrossValidator> validator_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Validation)

CLAIM(Validation, NoRowIsInTwoPartsOfAFold) {
  for (const SplitRequest& request : requests()) {
    for (const Fold& fold : validator_->plan(request).folds) {
      std::vector<int> uses(kRows, 0);
      for (const Rows* part : {&fold.training, &fold.validation, &fold.test}) {
        for (const std::int64_t row : *part)
          ++uses.at(static_cast<std::size_t>(row));
      }
      EXPECT_LE(*std::max_element(uses.begin(), uses.end()), 1) << fold.name;
      EXPECT_FALSE(fold.training.empty()) << fold.name;
      EXPECT_TRUE(!fold.validation.empty() || !fold.inner.empty()) << fold.name;
    }
  }
}

CLAIM(Validation, EachRowIsJudgedAsOftenAsItShould) {
  for (const SplitRequest& request : requests()) {
    std::vector<int> uses(kRows, 0);
    const ValidationPlan plan = validator_->plan(request);
    for (const Fold& fold : plan.folds) {
      for (const std::int64_t row : judged(plan, fold))
        ++uses.at(static_cast<std::size_t>(row));
    }
    const auto once = std::count(uses.begin(), uses.end(), 1);
    if (GetParam().judges_once) {
      EXPECT_EQ(std::count(uses.begin(), uses.end(), 0) + once, kRows);
    }
    const auto aside = static_cast<std::int64_t>(test_rows(plan).size());
    EXPECT_EQ(once + aside == kRows, GetParam().covers_every_row);
  }
}

CLAIM(Validation, SetsTestRowsAsideIfItWasAskedTo) {
  for (const SplitRequest& request : requests())
    EXPECT_EQ(!test_rows(validator_->plan(request)).empty(), GetParam().has_test_rows);
}

CLAIM(Validation, TestRowsNeitherTrainNorValidate) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan plan = validator_->plan(request);
    const Rows rows = test_rows(plan);
    const std::set<std::int64_t> test(rows.begin(), rows.end());
    EXPECT_EQ(test.size(), rows.size()) << "a row is set aside twice";
    for (const Fold& fold : plan.folds) {
      for (const Rows* part : {&fold.training, &fold.validation}) {
        for (const std::int64_t row : *part)
          EXPECT_EQ(test.count(row), 0U) << fold.name << ", row " << row;
      }
    }
  }
}

CLAIM(Validation, FoldsHaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const Fold& fold : validator_->plan(classes()).folds)
    names.push_back(fold.name);

  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_NE(names.front(), "");
}

CLAIM(Validation, RowsAreInOrder) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan plan = validator_->plan(request);
    const auto time_of = [&](std::int64_t row) { return request.timestamps[row].item<double>(); };
    const auto is_earlier = [&](std::int64_t a, std::int64_t b) { return time_of(a) < time_of(b); };
    const auto is_in_order = [&](const Rows& rows) {
      return std::is_sorted(rows.begin(), rows.end()) ||
             std::is_sorted(rows.begin(), rows.end(), is_earlier);
    };
    const auto expect_before = [&](const Fold& fold, const Rows& rows, const Rows& others) {
      if (!GetParam().orders_by_time || rows.empty() || others.empty())
        return;
      // Rows of one time are in one part.
      EXPECT_LT(time_of(*std::max_element(rows.begin(), rows.end(), is_earlier)),
                time_of(*std::min_element(others.begin(), others.end(), is_earlier)))
          << fold.name;
    };
    EXPECT_TRUE(is_in_order(test_rows(plan)))
        << "the test rows are neither in their own order nor in that of time";
    for (const Fold& fold : plan.folds) {
      for (const Rows* part : {&fold.training, &fold.validation, &fold.test}) {
        EXPECT_TRUE(is_in_order(*part))
            << fold.name << " has rows that are neither in their own order nor in that of time";
      }
      expect_before(fold, fold.training, fold.validation);
      expect_before(fold, fold.training, fold.test);
      expect_before(fold, fold.validation, fold.test);
      expect_before(fold, judged(plan, fold), test_rows(plan));
    }
  }
}

CLAIM(Validation, ClassesHaveTheirShareIfItSaysSo) {
  if (!GetParam().stratifies)
    return;
  const SplitRequest request = classes();
  const auto expect_shares = [&](const std::string& name, const RowList& part,
                                 const RowList& rest) {
    const auto share =
        static_cast<double>(part.size()) / static_cast<double>(part.size() + rest.size());
    for (std::int64_t c = 0; c < request.targets[0].class_count(); ++c) {
      const auto count = [&](const RowList& rows) {
        return request.target_values[0]
            .index_select(0, at::tensor(rows.numbers()))
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
  const Rows test = test_rows(plan);
  if (test.empty())
    return;
  expect_shares("test", test, rows_of_both(plan.folds[0].training, plan.folds[0].validation));
}

CLAIM(Validation, GroupsStayTogetherIfItSaysSo) {
  if (!GetParam().keeps_groups)
    return;
  for (const SplitRequest& request : requests()) {
    const auto groups_of = [&](const RowList& rows) {
      std::set<std::int64_t> groups;
      for (const std::int64_t row : rows)
        groups.insert(request.groups[row].item<std::int64_t>());
      return groups;
    };
    const ValidationPlan plan = validator_->plan(request);
    for (const Fold& fold : plan.folds) {
      const std::set<std::int64_t> training = groups_of(fold.training);
      const std::set<std::int64_t> validation = groups_of(judged(plan, fold));
      for (const std::int64_t group : validation)
        EXPECT_EQ(training.count(group), 0U) << fold.name << ", group " << group;
      for (const std::int64_t group : groups_of(test_rows(plan))) {
        EXPECT_EQ(training.count(group) + validation.count(group), 0U)
            << fold.name << " and the test, group " << group;
      }
    }
  }
}

CLAIM(Validation, SplitsDataWithoutGroupsAndTimesOrSaysWhatItNeeds) {
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

CLAIM(Validation, SplitsFewRowsOrSaysWhyItCannot) {
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

CLAIM(Validation, ThePlanIsAFunctionOfTheRequest) {
  for (const SplitRequest& request : requests()) {
    const ValidationPlan first = validator_->plan(request);
    validator_->plan(classes(99));

    expect_same(validator_->plan(request), first);
    expect_same(GetParam().make()->plan(request), first);
  }
}

CLAIM(Validation, TheSeedDecidesWhatIsRandom) {
  const ValidationPlan one = validator_->plan(classes(1));
  const ValidationPlan other = validator_->plan(classes(2));

  EXPECT_EQ(judged(one, one.folds[0]) != judged(other, other.folds[0]), GetParam().is_random);
}

CLAIM(Validation, DoesNotWriteToTheTargets) {
  const SplitRequest request = classes();
  const at::Tensor targets = request.target_values[0].clone();
  const at::Tensor timestamps = request.timestamps.clone();
  const at::Tensor groups = request.groups.clone();

  validator_->plan(request);

  EXPECT_TRUE(request.groups.equal(groups));
  EXPECT_TRUE(request.target_values[0].equal(targets));
  EXPECT_TRUE(request.timestamps.equal(timestamps));
}

CLAIM(Validation, RefusesDataWithOneRow) {
  SplitRequest request = classes();
  request.rows = 1;
  request.target_values[0] = request.target_values[0].slice(0, 0, 1);

  EXPECT_THROW(validator_->plan(request), DataError);
}

}  // namespace treadle::testing
