#include <treadle/core/validation/predictions.h>

#include <cstdint>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(Prediction, DecidesForTheFirstOfTheLikeliestClasses) {
  const Prediction prediction{TargetKind::kClasses,
                              at::tensor({0.2, 0.4, 0.4, 0.5, 0.3, 0.2}).view({2, 3})};

  EXPECT_TRUE(at::equal(decided(prediction), at::tensor({1, 0}, at::kLong)));
}

TEST(Prediction, DecidesForLabelsAboveOneHalf) {
  const Prediction prediction{TargetKind::kLabels, at::tensor({0.5, 0.51, 0.9, 0.1}).view({2, 2})};

  EXPECT_TRUE(at::equal(decided(prediction),
                        at::tensor({0, 1, 1, 0}, at::kLong).view({2, 2}).to(at::kBool)));
}

TEST(Prediction, KeepsADecisionThatWasMade) {
  Prediction prediction{TargetKind::kClasses, at::tensor({0.9, 0.1}).view({1, 2})};
  prediction.decision = at::tensor({1}, at::kLong);

  EXPECT_EQ(decided(prediction).item<std::int64_t>(), 1);
}

TEST(Prediction, VisitsEveryTensorWithTheDimensionOfItsRows) {
  Prediction prediction{TargetKind::kClasses, at::tensor({1.0}), at::tensor({2.0})};
  prediction.decision = at::tensor({3.0});
  prediction.extras = {{"q0.1", at::tensor({4.0}), 0.1}, {"undefined", at::Tensor()}};
  prediction.samples = at::tensor({5.0});

  std::vector<double> seen;
  std::vector<std::int64_t> rows;
  for_each_tensor(prediction, [&](const at::Tensor& tensor, std::int64_t dimension) {
    seen.push_back(tensor.item<double>());
    rows.push_back(dimension);
  });

  EXPECT_EQ(seen, (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 0, 0, 0, 1}));
}

TEST(Prediction, AppendsRowsOfEveryTensor) {
  Prediction prediction{TargetKind::kNumbers, at::tensor({1.0, 2.0}).view({2, 1})};
  prediction.samples = at::tensor({1.0, 2.0}).view({1, 2, 1});
  Prediction more = prediction;
  append(prediction, more);

  EXPECT_EQ(prediction.values.size(0), 4);
  EXPECT_EQ(prediction.samples.sizes(), (std::vector<std::int64_t>{1, 4, 1}));
  more.samples = at::Tensor();
  EXPECT_ANY_THROW(append(prediction, more));
}

}  // namespace
}  // namespace treadle
