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

TEST(CrossValidator, SaysThatOneRowIsTooFew) {
  EXPECT_EQ(refusal({{{"fold-1", {0}, {}}}, false}, 1),
            "the data has 1 row(s); training and validation need at least one each");
}

}  // namespace
}  // namespace treadle
