#include <treadle/core/validation/cross_validator.h>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using Rows = std::vector<std::int64_t>;

/// Returns the plan it was given: the checks of plan() are what is tested.
class Scripted : public CrossValidator {
 public:
  explicit Scripted(ValidationPlan plan) : plan_(std::move(plan)) {}

 private:
  ValidationPlan do_plan(const SplitRequest&) const override { return plan_; }
  ValidationPlan plan_;
};

std::string refusal(ValidationPlan plan, std::int64_t rows) {
  SplitRequest request;
  request.rows = rows;
  try {
    Scripted(std::move(plan)).plan(request);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string kPlan = "a component failed in plan(): it returned a plan ";

TEST(CrossValidator, AcceptsDisjointParts) {
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}}, 3), "");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}, {3}}}}, 4), "");
}

TEST(CrossValidator, RefusesPlansThatWouldLeakOrStarve) {
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {1}}}}, 3), kPlan + "in which fold-1 uses row 1 twice");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}, {2}}}}, 3),
            kPlan + "in which fold-1 uses row 2 twice");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {3}}}}, 3), kPlan + "in which fold-1 has row 3 of 3");
  EXPECT_EQ(refusal({{{"fold-1", {}, {0}}}}, 3), kPlan + "in which fold-1 has no training rows");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {}}}}, 3), kPlan + "in which fold-1 has no validation rows");
  EXPECT_EQ(refusal({{}}, 3), kPlan + "without folds");
}

TEST(CrossValidator, RefusesTestRowsOfTheRunsModelThatAlsoTrainOrValidate) {
  const auto refit = [](Rows training, Rows test) { return Fold{"final", training, {}, test}; };
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({0, 1, 2}, {3})}, 4), "");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({0, 2}, {1})}, 4),
            kPlan + "in which fold-1 uses row 1, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {1}}, {"fold-2", {1}, {2}}}, refit({0, 1}, {2})}, 4),
            kPlan + "in which fold-2 uses row 2, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({0}, {3, 3})}, 4),
            kPlan + "in which the test uses row 3 twice");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({0}, {4})}, 4),
            kPlan + "in which the test has row 4 of 4");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({0, 3}, {3})}, 4),
            kPlan + "in which the refit uses row 3, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, refit({}, {3})}, 4),
            kPlan + "in which the refit has no training rows");
}

TEST(CrossValidator, RefusesFoldsOfWhichOnlySomeAreTested) {
  EXPECT_EQ(refusal({{{"fold-1", {0}, {1}, {2}}, {"fold-2", {1}, {2}}}}, 3),
            kPlan + "in which some folds are tested and others are not");
}

TEST(CrossValidator, RefusesWarmStartsFromFoldsThatAreNotBefore) {
  Fold first{"fold-1", {0}, {1}};
  Fold second{"fold-2", {1}, {2}};
  second.starts_from = 0;
  EXPECT_EQ(refusal({{first, second}}, 3), "");
  second.starts_from = 1;
  EXPECT_EQ(refusal({{first, second}}, 3),
            kPlan + "in which fold-2 starts from a fold that is not before it");
}

TEST(CrossValidator, RefusesInnerFoldsOfOtherRows) {
  Fold fold{"outer-1", {0, 1, 2}, {}, {3}};
  fold.inner = {{"fold-1", {0, 1}, {2}}, {"fold-2", {2}, {0, 1}}};
  EXPECT_EQ(refusal({{fold}}, 5), "");
  Fold stranger = fold;
  stranger.inner[0].training = {0, 4};
  EXPECT_EQ(refusal({{stranger}}, 5),
            kPlan +
                "in which outer-1/fold-1 uses a row twice, or one that is no training row of "
                "outer-1");
  Fold untested = fold;
  untested.test = {};
  EXPECT_EQ(refusal({{untested}}, 5), kPlan + "in which outer-1 has inner folds and no test rows");
  Fold named = fold;
  named.inner[1].name = "final";
  EXPECT_EQ(refusal({{named}}, 5), kPlan + "in which two fits are called \"final\"");
}

TEST(CrossValidator, RefusesFoldsWhoseNamesCannotNameAFit) {
  EXPECT_EQ(
      refusal({{{"../fold", {0}, {1}}}}, 2),
      kPlan +
          "in which a fold is called \"../fold\", which cannot name a fit: a name has 1 to 64 "
          "letters, digits, '-' and '_', and does not begin with '-'");
  EXPECT_EQ(refusal({{{"half", {0}, {1}}, {"half", {1}, {0}}}}, 2),
            kPlan + "in which two fits are called \"half\"");
  EXPECT_EQ(refusal({{{"final", {0}, {1}}}, Fold{"final", {0, 1}, {}}}, 2),
            kPlan + "in which two fits are called \"final\"");
  EXPECT_EQ(refusal({{{"final", {0}, {1}}}}, 2), "");
}

TEST(CrossValidator, SaysThatOneRowIsTooFew) {
  EXPECT_EQ(refusal({{{"fold-1", {0}, {}}}}, 1),
            "the data has 1 row(s); training and validation need at least one each");
}

}  // namespace
}  // namespace treadle
