#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/validation/set_aside.h>
#include <treadle/testing/data/validation_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_validators {
namespace {

using Rows = std::vector<std::int64_t>;

/// 0 … count - 1.
Rows in_order(std::int64_t count) {
  Rows rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Two folds of random halves. `change` makes it wrong.
class Halves final : public CrossValidator {
 public:
  using Change = std::function<void(ValidationPlan& plan, const SplitRequest& request)>;
  explicit Halves(Change change) : change_(std::move(change)) {}

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override {
    ValidationPlan plan =
        plan_of(random_permutation(request.rows, request.random.bits("halves")), request.rows / 2);
    if (change_)
      change_(plan, request);
    return plan;
  }

 public:
  static ValidationPlan plan_of(const Rows& order, std::int64_t cut) {
    Rows first(order.begin(), order.begin() + cut);
    Rows second(order.begin() + cut, order.end());
    std::sort(first.begin(), first.end());
    std::sort(second.begin(), second.end());
    return {{{"first", second, first}, {"second", first, second}}};
  }

 private:
  Change change_;
};

ValidationCase halves(std::string name, const Halves::Change& change = {}) {
  return {std::move(name), [change] { return std::make_unique<Halves>(change); }};
}

ValidationCase declared(ValidationCase one, bool ValidationCase::*quirk) {
  one.*quirk = true;
  return one;
}

std::vector<Wrong<ValidationCase>> all() {
  using Plan = ValidationPlan&;
  using Request = const SplitRequest&;
  const auto not_random = [](ValidationCase one) {
    one.is_random = false;
    return one;
  };
  const auto sorted_by_class = [](Request request) {
    Rows order = in_order(request.rows);
    const at::Tensor& values = request.target_values[0];
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return values[a].item<double>() < values[b].item<double>();
    });
    return order;
  };
  const auto by_class = [sorted_by_class](Plan plan, Request request) {
    plan = Halves::plan_of(sorted_by_class(request), request.rows / 2);
  };
  // The places of `order` in turn in one and the other half, after the first ones, which are for
  // the test.
  const auto with_test = [](const Rows& order, std::size_t test) {
    if (order.size() < test + 2)
      throw DataError("too few rows to set " + std::to_string(test) + " aside");
    Rows first;
    Rows second;
    for (std::size_t i = test; i < order.size(); ++i)
      (i % 2 == 0 ? first : second).push_back(order[i]);
    for (Rows* half : {&first, &second})
      std::sort(half->begin(), half->end());
    ValidationPlan plan{{{"first", second, first}, {"second", first, second}}};
    Rows all = first;
    all.insert(all.end(), second.begin(), second.end());
    plan.refit = refit_on(all);
    plan.refit->test = RowList(order).part(0, test);
    return plan;
  };
  const auto tested = [not_random](ValidationCase one) {
    one.has_test_rows = true;
    return not_random(std::move(one));
  };
  const auto leaving_some = [](ValidationCase one) {
    one.covers_every_row = false;
    return one;
  };
  return {
      {not_random(halves("TestsOnRowsThatNobodyAskedFor",
                         [with_test](Plan plan, Request request) {
                           plan = with_test(in_order(request.rows), 8);
                         })),
       {"SetsTestRowsAsideIfItWasAskedTo"}},
      {tested(halves("ForgetsTheTestRows",
                     [with_test](Plan plan, Request request) {
                       plan = with_test(in_order(request.rows), 0);
                     })),
       {"SetsTestRowsAsideIfItWasAskedTo"}},
      {leaving_some(tested(halves(
           "DrawsTestRowsAnew",
           [with_test, count = std::make_shared<std::int64_t>(0)](Plan plan, Request request) {
             plan = with_test(in_order(request.rows), 2);
             plan.refit->test = {++*count % 2};
           }))),
       {"ThePlanIsAFunctionOfTheRequest"}},
      {tested(halves("LeavesTestRowsInDisorder",
                     [with_test](Plan plan, Request request) {
                       plan = with_test(in_order(request.rows), 3);
                       plan.refit->test = plan.refit->test.at({1, 2, 0});
                     })),
       {"RowsAreInOrder"}},
      {leaving_some(tested(declared(halves("TestsOnThePast",
                                           [with_test](Plan plan, Request request) {
                                             // Time runs against the rows' numbers.
                                             plan = with_test({2, 1, 0}, 1);
                                             if (request.rows < 3)
                                               throw DataError("too few rows");
                                             plan.folds.resize(1);
                                           }),
                                    &ValidationCase::orders_by_time))),
       {"RowsAreInOrder"}},
      {tested(declared(halves("TestsOnOneClass",
                              [with_test, sorted_by_class](Plan plan, Request request) {
                                plan = with_test(sorted_by_class(request), 8);
                                plan.refit->test = rows_of_both(plan.refit->test, {});
                              }),
                       &ValidationCase::stratifies)),
       {"ClassesHaveTheirShareIfItSaysSo"}},
      // Of the groups, row % 20, one half is even.
      {tested(declared(halves("CutsAGroupForTheTest",
                              [with_test](Plan plan, Request request) {
                                plan = with_test(in_order(request.rows), 2);
                              }),
                       &ValidationCase::keeps_groups)),
       {"GroupsStayTogetherIfItSaysSo"}},
      {halves("ValidatesARowTwice",
              [](Plan plan, Request) {
                RowList& training = plan.folds[0].training;
                if (training.size() < 2)
                  return;
                plan.folds[0].validation =
                    rows_of_both(plan.folds[0].validation, {training.back()});
                training = training.part(0, training.size() - 1);
              }),
       {"EachRowIsJudgedAsOftenAsItShould"}},
      {halves("HasAMemory",
              [count = std::make_shared<std::int64_t>(0)](Plan plan, Request request) {
                if (++*count % 2 == 0)
                  plan = Halves::plan_of(random_permutation(request.rows, RandomBits(1)), 1);
              }),
       {"ThePlanIsAFunctionOfTheRequest"}},
      {halves("IgnoresTheSeed",
              [](Plan plan, Request request) {
                plan = Halves::plan_of(random_permutation(request.rows, RandomBits(1)), 1);
              }),
       {"TheSeedDecidesWhatIsRandom"}},
      {halves("LeavesRowsInDisorder",
              [](Plan plan, Request) {
                // Reversed, they would be in order of time.
                Rows rows = plan.folds[0].training.numbers();
                std::rotate(rows.begin(), rows.begin() + 1, rows.end());
                plan.folds[0].training = std::move(rows);
              }),
       {"RowsAreInOrder"}},
      {declared(halves("TrainsOnTheFuture"), &ValidationCase::orders_by_time), {"RowsAreInOrder"}},
      {leaving_some(not_random(declared(halves("CutsThroughATime",
                                               [](Plan plan, Request request) {
                                                 const RowList rows = rows_in_time(request);
                                                 const std::size_t half = rows.size() / 2;
                                                 Fold fold;
                                                 fold.name = "first";
                                                 fold.training = rows.part(0, half);
                                                 fold.validation =
                                                     rows.part(half, rows.size() - half);
                                                 plan = {{fold}};
                                               }),
                                        &ValidationCase::orders_by_time))),
       {"RowsAreInOrder"}},
      {halves("NamesFoldsAlike", [](Plan plan, Request) { plan.folds[1].name = "first"; }),
       // plan() itself refuses it.
       {"DoesNotWriteToTheTargets", "EachRowIsJudgedAsOftenAsItShould", "FoldsHaveNamesOfTheirOwn",
        "NoRowIsInTwoPartsOfAFold", "RowsAreInOrder", "SetsTestRowsAsideIfItWasAskedTo",
        "SplitsDataWithoutGroupsAndTimesOrSaysWhatItNeeds", "SplitsFewRowsOrSaysWhyItCannot",
        "TestRowsNeitherTrainNorValidate", "ThePlanIsAFunctionOfTheRequest",
        "TheSeedDecidesWhatIsRandom"}},
      {not_random(declared(halves("CutsByClass", by_class), &ValidationCase::stratifies)),
       {"ClassesHaveTheirShareIfItSaysSo"}},
      {declared(halves("CutsGroups"), &ValidationCase::keeps_groups),
       {"GroupsStayTogetherIfItSaysSo"}},
      {halves("WritesToTheTargets",
              [](Plan, Request request) { request.target_values[0].add_(1); }),
       {"DoesNotWriteToTheTargets"}},
      {halves("NeedsGroupsAndDoesNotSaySo", [](Plan, Request request) { request.groups.max(); }),
       {"SplitsDataWithoutGroupsAndTimesOrSaysWhatItNeeds"}},
      {halves("FailsOnFewRows",
              [](Plan, Request request) {
                if (request.rows < 5)
                  throw std::out_of_range("rows");
              }),
       {"SplitsFewRowsOrSaysWhyItCannot"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, ValidationContract, ::testing::Values(halves("Halves")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, ValidationContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_validators

std::vector<Defect> validation_defects() {
  return defects_of("ValidationContract", wrong_validators::all());
}

}  // namespace treadle::testing
