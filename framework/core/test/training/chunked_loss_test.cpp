#include <treadle/core/training/chunked_loss.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

constexpr std::int64_t kClasses = 11;

/// The sum of weighted cross-entropies.
class Surprise : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec&) const override {
    return {{"logits", {kClasses}}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    largest_ = std::max(largest_, outputs[0].numel());
    const at::Tensor each = at::cross_entropy_loss(outputs[0].flatten(0, -2),
                                                   target.values().flatten(), {}, /*reduction=*/0);
    return {each.mul(target.weights().flatten()).sum(), target.weights().sum()};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kClasses, outputs[0]};
  }

 public:
  mutable std::int64_t largest_ = 0;  // output that was ever given, in numbers
};

class ChunkedLoss : public ::testing::Test {
 protected:
  ChunkedLoss() {
    batch_.targets = batch_.original_targets = {at::randint(kClasses, {4, 6}, at::kLong)};
    batch_.position_weights = {at::rand({4, 6}, at::kDouble)};
    batch_.rows = at::randint(9, {4}, at::kLong);
    for (at::Tensor* leaf : {&weight_, &bias_, &inner_})
      leaf->set_requires_grad(true);
  }

  TargetBatch target() const { return TargetBatch::transformed(batch_, 0, spec_); }
  at::Tensor features() const { return given_.matmul(inner_).tanh(); }
  DeferredOutput deferred() const {
    return {features(),
            [this](const at::Tensor& part) { return at::linear(part, weight_, bias_); },
            {weight_, bias_}};
  }

  struct Outcome {
    double sum;
    double weight;
    std::vector<at::Tensor> gradients;
  };
  Outcome outcome_of(const LossTerms& terms) {
    for (at::Tensor* leaf : {&weight_, &bias_, &inner_})
      leaf->mutable_grad().reset();
    terms.sum.mul(0.25).backward();
    return {terms.sum.item<double>(),
            terms.weight.item<double>(),
            {weight_.grad().clone(), bias_.grad().clone(), inner_.grad().clone()}};
  }

  TaskRandom random_{3};
  const TargetSpec spec_ = class_target("word", std::vector<std::string>(kClasses, "w"), {6});
  Surprise loss_;
  Batch batch_;
  at::Tensor given_ = at::randn({4, 6, 3}, at::kDouble);
  at::Tensor inner_ = at::randn({3, 5}, at::kDouble);
  at::Tensor weight_ = at::randn({kClasses, 5}, at::kDouble);
  at::Tensor bias_ = at::randn({kClasses}, at::kDouble);
};

TEST_F(ChunkedLoss, EqualsTheWholeForAnyNumberOfChunks) {
  const Outcome whole =
      outcome_of(loss_.forward({at::linear(features(), weight_, bias_)}, target()));

  for (const std::int64_t chunks : {1, 2, 5, 24, 100}) {
    SCOPED_TRACE(chunks);
    const Outcome got = outcome_of(chunked_forward(loss_, deferred(), target(), chunks));

    EXPECT_NEAR(got.sum, whole.sum, 1e-12);
    EXPECT_NEAR(got.weight, whole.weight, 1e-12);
    for (std::size_t i = 0; i < whole.gradients.size(); ++i)
      EXPECT_TRUE(at::allclose(got.gradients[i], whole.gradients[i], 1e-12, 1e-12)) << i;
  }
}

TEST_F(ChunkedLoss, NeverHoldsMoreThanAChunk) {
  chunked_forward(loss_, deferred(), target(), 5).sum.backward();

  EXPECT_EQ(loss_.largest_, 5 * kClasses);  // of 24 positions
}

TEST_F(ChunkedLoss, AddsToGradientsThatAreThere) {
  const at::Tensor once = outcome_of(chunked_forward(loss_, deferred(), target(), 3)).gradients[0];

  chunked_forward(loss_, deferred(), target(), 3).sum.mul(0.25).backward();

  EXPECT_TRUE(at::allclose(weight_.grad(), once.mul(2), 1e-14, 1e-14));
}

TEST_F(ChunkedLoss, GivesNoGradientToWhatIsFrozen) {
  const at::Tensor whole =
      outcome_of(loss_.forward({at::linear(features(), weight_, bias_)}, target())).gradients[2];
  weight_.set_requires_grad(false);
  weight_.mutable_grad().reset();
  inner_.mutable_grad().reset();

  chunked_forward(loss_, deferred(), target(), 3).sum.mul(0.25).backward();

  EXPECT_FALSE(weight_.grad().defined());
  EXPECT_TRUE(at::allclose(inner_.grad(), whole, 1e-12, 1e-12));
}

TEST_F(ChunkedLoss, GradientsThatAreAskedForAreResultsAndNotAdded) {
  const LossTerms terms = chunked_forward(loss_, deferred(), target(), 3);

  const auto found = torch::autograd::grad({terms.sum}, {weight_, inner_});

  EXPECT_TRUE(found[0].defined() && found[1].defined());
  EXPECT_FALSE(weight_.grad().defined());
}

TEST_F(ChunkedLoss, WithoutGradientsIsTheSum) {
  const at::NoGradGuard no_gradients;

  const LossTerms terms = chunked_forward(loss_, deferred(), target(), 4);

  EXPECT_FALSE(terms.sum.requires_grad());
  EXPECT_NEAR(terms.sum.item<double>(),
              loss_.forward({at::linear(features(), weight_, bias_)}, target()).sum.item<double>(),
              1e-12);
}

TEST_F(ChunkedLoss, SumsGradientsOfSixteenBitsInThirtyTwo) {
  // A thousand gradients of one, of which bfloat16 would hold 256.
  weight_ = at::ones({1, 1}, at::kBFloat16).set_requires_grad(true);
  struct Total : Surprise {
    LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                         const TargetBatch&) const override {
      return {outputs[0].sum(), {}};
    }
  } const total;
  batch_.targets = {at::zeros({1000}, at::kLong)};
  batch_.position_weights = {};
  const TargetSpec word = class_target("word", {"a", "b"});
  const DeferredOutput ones{at::ones({1000, 1}, at::kBFloat16),
                            [&](const at::Tensor& part) { return at::linear(part, weight_); },
                            {weight_}};

  chunked_forward(total, ones, TargetBatch::transformed(batch_, 0, word), 1000).sum.backward();

  EXPECT_EQ(weight_.grad().item<double>(), 1000);
}

TEST_F(ChunkedLoss, RefusesASecondBackwardAndOtherPositions) {
  const at::Tensor sum = chunked_forward(loss_, deferred(), target(), 3).sum;
  sum.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(sum.backward(), TrainingError);

  DeferredOutput other = deferred();
  other.features = other.features.flatten(0, 1).slice(0, 1);
  EXPECT_THROW(chunked_forward(loss_, other, target(), 3), TrainingError);
}

}  // namespace
}  // namespace treadle
