#include <treadle/core/cross_validator.h>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

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

TEST(CrossValidator, AcceptsDisjointParts) {
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false}, 3), "");
}

TEST(CrossValidator, RefusesPlansThatWouldLeakOrStarve) {
  const std::string plan = "a component failed in plan(): it returned a plan ";
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {1}}}, false}, 3),
            plan + "in which fold-1 uses row 1 twice");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {3}}}, false}, 3), plan + "in which fold-1 has row 3 of 3");
  EXPECT_EQ(refusal({{{"fold-1", {}, {0}}}, false}, 3),
            plan + "in which fold-1 has no training rows");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {}}}, false}, 3),
            plan + "in which fold-1 has no validation rows");
  EXPECT_EQ(refusal({{}, false}, 3), plan + "without folds");
}

TEST(CrossValidator, RefusesTestRowsThatAlsoTrainOrValidate) {
  const std::string plan = "a component failed in plan(): it returned a plan ";
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false, {3}}, 4), "");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false, {1}}, 4),
            plan + "in which fold-1 uses row 1, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false, {2, 3}}, 4),
            plan + "in which fold-1 uses row 2, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {1}}, {"fold-2", {1}, {2}}}, true, {2}}, 4),
            plan + "in which fold-2 uses row 2, which is set aside for the test");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false, {3, 3}}, 4),
            plan + "in which the test uses row 3 twice");
  EXPECT_EQ(refusal({{{"fold-1", {0, 1}, {2}}}, false, {4}}, 4),
            plan + "in which the test has row 4 of 4");
}

TEST(CrossValidator, RefusesTestRowsWithoutAModelToTest) {
  EXPECT_EQ(refusal({{{"fold-1", {0}, {1}}, {"fold-2", {1}, {0}}}, false, {2}}, 3),
            "a component failed in plan(): it returned a plan with test rows and without a model "
            "to test: it has several folds and no refit");
  EXPECT_EQ(refusal({{{"fold-1", {0}, {1}}, {"fold-2", {1}, {0}}}, true, {2}}, 3), "");
}

TEST(CrossValidator, RefusesFoldsWhoseNamesCannotNameAFit) {
  const std::string plan = "a component failed in plan(): it returned a plan in which ";
  EXPECT_EQ(
      refusal({{{"../fold", {0}, {1}}}, false}, 2),
      plan +
          "a fold is called \"../fold\", which cannot name a fit: a name has 1 to 64 letters, "
          "digits, '-' and '_', and does not begin with '-'");
  EXPECT_EQ(refusal({{{"half", {0}, {1}}, {"half", {1}, {0}}}, false}, 2),
            plan + "two fits are called \"half\"");
  EXPECT_EQ(refusal({{{"final", {0}, {1}}}, true}, 2), plan + "two fits are called \"final\"");
  EXPECT_EQ(refusal({{{"final", {0}, {1}}}, false}, 2), "");
}

TEST(CrossValidator, SaysThatOneRowIsTooFew) {
  EXPECT_EQ(refusal({{{"fold-1", {0}, {}}}, false}, 1),
            "the data has 1 row(s); training and validation need at least one each");
}

}  // namespace
}  // namespace treadle
