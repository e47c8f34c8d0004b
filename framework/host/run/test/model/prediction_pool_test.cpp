#include "model/prediction_pool.h"

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

EnsembleResult ensemble(const nlohmann::json& first, const nlohmann::json& second) {
  EnsembleResult result;
  result.pool = "linear";
  result.members = {{"members/0", 0, first}, {"members/1", 1, second}};
  return result;
}

TEST(PredictionPools, HaveAWeightOrSomeOfEachMember) {
  EXPECT_EQ(read_pool(ensemble(0.25, 0.75)).weights.sizes(), (at::IntArrayRef{2, 1}));
  EXPECT_EQ(read_pool(ensemble({1, 2, 3}, {4, 5, 6})).weights.sizes(), (at::IntArrayRef{2, 3}));
}

// An exported model may be a stranger's.
TEST(PredictionPools, OfMembersThatDoNotFitEachOtherAreRefused) {
  const auto none = nlohmann::json::array();

  EXPECT_THROW(read_pool(ensemble({1, 2}, {1, 2, 3})), StorageError);
  EXPECT_THROW(read_pool(ensemble({1, 2}, 1)), StorageError);
  EXPECT_THROW(read_pool(ensemble(none, none)), StorageError);
  EXPECT_THROW(read_pool(ensemble(1, "1")), StorageError);
  EXPECT_THROW(read_pool(EnsembleResult()), StorageError);
}

}  // namespace
}  // namespace treadle::internal
