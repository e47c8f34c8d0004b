#include <treadle/core/components/fit_id.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using ::testing::HasSubstr;

TEST(FitId, IsAPath) {
  const FitId trial("trial-7", 7, 60);

  const FitId fold = trial.child("fold-2", 1, 5);

  EXPECT_EQ(fold.path(), "trial-7/fold-2");
  EXPECT_EQ(fold.index(), 1);
  EXPECT_EQ(fold.count(), 5);
  EXPECT_EQ(fold.group(), "trial-7");
  EXPECT_EQ(trial.group(), "");
  EXPECT_EQ(FitId().path(), "final");
}

TEST(FitId, RefusesPartsThatLeaveTheRunsFolder) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "a\\b", "/tmp", ".lock", "a.tmp", "-o",
                           "a,b", "a b", "a\nb", "ä"}) {
    EXPECT_FALSE(FitId::is_part(name)) << name;
    try {
      FitId("group", 0, 1).child(name, 0, 1);
      ADD_FAILURE() << name;
    } catch (const ContractViolation& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot name a fit: a name has 1 to 64 letters"));
    }
  }
  EXPECT_FALSE(FitId::is_part(std::string(65, 'a')));
  EXPECT_TRUE(FitId::is_part(std::string(64, 'a')));
  EXPECT_TRUE(FitId::is_part("2024-Q1_b"));
}

TEST(FitId, HasStreamsOfItsOwnAtEveryPlaceInTheTree) {
  const RandomStreams run(11);
  const FitId trial("trial-1", 1, 2);

  const std::uint64_t seeds[] = {
      trial.random(run).root(),
      FitId("fold-1", 0, 2).random(run).root(),
      trial.child("fold-1", 0, 2).random(run).root(),
      trial.child("fold-2", 1, 2).random(run).root(),
      FitId("trial-2", 2, 2).child("fold-2", 1, 2).random(run).root(),
  };

  for (std::size_t i = 0; i < std::size(seeds); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_NE(seeds[i], seeds[k]) << i << " " << k;
  }
}

/// Runs of the first versions, and their golden results, have these.
TEST(FitId, HasTheStreamsOfAFoldByItsNumber) {
  const RandomStreams run(11);

  EXPECT_EQ(FitId("fold-3", 2, 5).random(run).root(), run.part("trial", 2).root());
  EXPECT_EQ(FitId("fold-3", 2, 7).random(run).root(), run.part("trial", 2).root());
  EXPECT_EQ(FitId().random(run).root(), run.part("trial", 0).root());
}

}  // namespace
}  // namespace treadle
