#include "ranks/fit_division.h"

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

Fold fold_named(const char* name) {
  Fold fold;
  fold.name = name;
  return fold;
}

ValidationPlan folds(int count) {
  ValidationPlan plan;
  for (int i = 0; i < count; ++i)
    plan.folds.push_back(fold_named("fold"));
  return plan;
}

TEST(FitDivision, IsByFitsWhereEachProcessHasOne) {
  EXPECT_EQ(divide("auto", 2, fits_at_once(folds(5), {}), 4).text, "2 processes share 5 folds");
  EXPECT_TRUE(divide("auto", 5, fits_at_once(folds(5), {}), 4).divides_fits);
  const FitDivision by_shards = divide("auto", 6, fits_at_once(folds(5), {}), 8);
  EXPECT_FALSE(by_shards.divides_fits);
  EXPECT_EQ(by_shards.text, "6 processes share the 8 shards of each step");
}

TEST(FitDivision, CountsTrialsThatRunAtOnceWithTheirFolds) {
  EXPECT_EQ(fits_at_once(folds(1), 4).count(), 4);
  EXPECT_EQ(divide("auto", 4, fits_at_once(folds(1), 4), 1).text,
            "4 processes share the trials of the search, 4 at once");
  EXPECT_EQ(divide("auto", 8, fits_at_once(folds(3), 4), 1).text,
            "8 processes share the trials of the search, 4 at once with 3 folds each");
}

TEST(FitDivision, CountsFoldsWithinFolds) {
  ValidationPlan plan = folds(2);
  for (Fold& fold : plan.folds)
    fold.inner = {fold_named("inner-1"), fold_named("inner-2"), fold_named("inner-3")};
  EXPECT_EQ(fits_at_once(plan, {}).count(), 6);
}

TEST(FitDivision, CountsFoldsThatBeginWithTheWeightsOfOthersOnce) {
  ValidationPlan plan = folds(3);
  plan.folds[1].starts_from = 0;
  plan.folds[2].starts_from = 1;
  EXPECT_EQ(fits_at_once(plan, {}).count(), 1);
}

TEST(FitDivision, IsWhatTheDocumentWants) {
  EXPECT_FALSE(divide("shards", 2, fits_at_once(folds(5), {}), 4).divides_fits);
  EXPECT_TRUE(divide("fits", 8, fits_at_once(folds(5), {}), 4).divides_fits);
  EXPECT_THROW(divide("fits", 2, fits_at_once(folds(1), {}), 4), UsageError);
}

TEST(FitDivision, IsNoneForOneProcess) {
  EXPECT_FALSE(divide("fits", 1, fits_at_once(folds(5), {}), 4).divides_fits);
  EXPECT_EQ(divide("auto", 1, fits_at_once(folds(5), {}), 4).text, "");
}

}  // namespace
}  // namespace treadle::internal
