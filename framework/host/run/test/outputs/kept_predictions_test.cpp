#include "outputs/kept_predictions.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "evaluation/collected_predictions.h"

namespace treadle::internal {
namespace {

/// Of rows whose prediction is ten times their number, and the target the number.
KeptPredictions kept_of(const at::Tensor& rows) {
  KeptPredictions kept;
  kept.predictions = {{TargetKind::kNumbers, rows.to(at::kDouble).mul(10).unsqueeze(1)}};
  kept.predictions[0].extras = {{"q0.9", kept.predictions[0].values.add(1), 0.9}};
  kept.rows.rows = rows;
  kept.rows.targets = kept.rows.original_targets = {rows.to(at::kDouble).unsqueeze(1)};
  kept.rows.position_weights = {at::Tensor()};
  return kept;
}

TEST(KeptPredictions, OfPartsFollowOneAnother) {
  const KeptPredictions parts[] = {kept_of(at::tensor({3, 1}, at::kLong)),
                                   kept_of(at::tensor({2}, at::kLong))};
  const KeptPredictions all = joined(parts);

  EXPECT_TRUE(at::equal(all.rows.rows, at::tensor({3, 1, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(all.predictions[0].values,
                        at::tensor({30.0, 10.0, 20.0}, at::kDouble).unsqueeze(1)));
  EXPECT_TRUE(at::equal(all.predictions[0].extras[0].values,
                        at::tensor({31.0, 11.0, 21.0}, at::kDouble).unsqueeze(1)));
  EXPECT_FALSE(all.rows.position_weights[0].defined());
}

TEST(KeptPredictions, OfAPartWithoutWeightsCountOneEach) {
  KeptPredictions parts[] = {kept_of(at::tensor({3, 1}, at::kLong)),
                             kept_of(at::tensor({2}, at::kLong))};
  parts[0].rows.position_weights = {at::tensor({0.5, 2.0}, at::kDouble)};

  EXPECT_TRUE(
      at::equal(joined(parts).rows.position_weights[0], at::tensor({0.5, 2.0, 1.0}, at::kDouble)));
}

TEST(KeptPredictions, OfWhichSomeHaveOutputsAreAligned) {
  KeptPredictions parts[] = {kept_of(at::tensor({3, 1}, at::kLong)),
                             kept_of(at::tensor({2}, at::kLong))};
  parts[1].predictions[0].extras.push_back({"upper", parts[1].predictions[0].values, 0.5});
  parts[1].predictions[0].decision = at::tensor({0}, at::kLong);
  parts[0].predictions[0].logits = parts[0].predictions[0].values;
  align(parts);

  const Prediction all = joined(parts).predictions[0];
  ASSERT_EQ(all.extras.size(), 2U);
  EXPECT_TRUE(at::equal(all.extras[1].values.isnan().squeeze(1),
                        at::tensor({1, 1, 0}, at::kLong).to(at::kBool)));
  EXPECT_TRUE(all.decision.defined());
  EXPECT_FALSE(all.logits.defined());
}

TEST(KeptPredictions, CanDoWithoutTheRowsOfOthers) {
  const KeptPredictions part =
      without(kept_of(at::tensor({5, 7, 5, 9}, at::kLong)), at::tensor({9, 5}, at::kLong));

  EXPECT_TRUE(at::equal(part.rows.rows, at::tensor({7}, at::kLong)));
  EXPECT_EQ(part.predictions[0].values.item<double>(), 70);
  EXPECT_EQ(part.rows.original_targets[0].item<double>(), 7);
}

}  // namespace
}  // namespace treadle::internal
