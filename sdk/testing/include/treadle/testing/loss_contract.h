#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/loss.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/case_name.h>

/// What every Loss must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Losses, LossContract, ::testing::Values(
///         LossCase{"mse", [] { return plugin().make<Loss>("mse"); }, LossCase::numbers(2)}),
///         CaseName());
namespace treadle::testing {

struct LossCase {
  std::string name;
  std::function<std::unique_ptr<Loss>()> make;
  TargetSpec target;  ///< one the loss works on

  static TargetSpec numbers(std::int64_t width) {
    return {"price", TargetKind::kNumbers, width, {}};
  }
  static TargetSpec classes(std::int64_t count) {
    TargetSpec target{"species", TargetKind::kClasses, 1, {}};
    for (std::int64_t c = 0; c < count; ++c)
      target.class_names.push_back("class-" + std::to_string(c));
    return target;
  }
};

class LossContract : public ::testing::TestWithParam<LossCase> {
 protected:
  static constexpr std::int64_t kRows = 12;

  using Tensors = std::vector<at::Tensor>;

  Tensors random_outputs(at::ScalarType dtype = at::kDouble) const {
    Tensors outputs;
    for (const OutputSpec& output : loss_->outputs_for(target()))
      outputs.push_back(at::randn({kRows, output.width}, dtype));
    return outputs;
  }

  Batch random_batch(at::ScalarType dtype = at::kDouble) const {
    Batch batch;
    batch.targets = target().kind == TargetKind::kClasses
                        ? at::randint(target().class_count(), {kRows}, at::kLong)
                        : at::randn({kRows, target().width}, dtype);
    batch.original_targets = batch.targets;
    batch.rows = at::arange(kRows);
    return batch;
  }

  /// Rows [begin, end) of `batch` and of `outputs`.
  static std::pair<Tensors, Batch> part(const Tensors& outputs, const Batch& batch,
                                        std::int64_t begin, std::int64_t end) {
    const auto cut = [&](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.slice(0, begin, end) : tensor;
    };
    Tensors some;
    for (const at::Tensor& output : outputs)
      some.push_back(cut(output));
    return {some,
            Batch{{}, cut(batch.targets), cut(batch.targets), cut(batch.weights), cut(batch.rows)}};
  }

  static double weight_of(const LossTerms& terms, const Batch& batch) {
    return terms.weight.defined() ? terms.weight.item<double>() : static_cast<double>(batch.size());
  }
  static double mean_of(const LossTerms& terms, const Batch& batch) {
    return terms.sum.item<double>() / weight_of(terms, batch);
  }

  const TargetSpec& target() const { return GetParam().target; }

  TaskRandom random_{17};
  std::unique_ptr<Loss> loss_ = GetParam().make();
};

TEST_P(LossContract, AsksForOutputs) {
  const auto outputs = loss_->outputs_for(target());

  ASSERT_FALSE(outputs.empty());
  for (const OutputSpec& output : outputs) {
    EXPECT_FALSE(output.name.empty());
    EXPECT_GE(output.width, 1);
  }
}

TEST_P(LossContract, RefusesTheOtherKindOfTarget) {
  const bool classes = target().kind == TargetKind::kClasses;

  EXPECT_THROW(loss_->outputs_for(classes ? LossCase::numbers(1) : LossCase::classes(3)),
               DataError);
}

TEST_P(LossContract, GivesScalarsInTheOutputsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const LossTerms terms = loss_->forward(random_outputs(dtype), random_batch(dtype));

    EXPECT_EQ(terms.sum.dim(), 0);
    EXPECT_EQ(terms.sum.scalar_type(), dtype);
    if (terms.weight.defined()) {
      EXPECT_EQ(terms.weight.dim(), 0);
      EXPECT_FALSE(terms.weight.requires_grad());
    }
  }
}

TEST_P(LossContract, AddsUpOverPartsOfABatch) {
  const auto outputs = random_outputs();
  const auto batch = random_batch();
  const auto [head, head_batch] = part(outputs, batch, 0, 5);
  const auto [tail, tail_batch] = part(outputs, batch, 5, kRows);

  const LossTerms whole = loss_->forward(outputs, batch);
  const LossTerms first = loss_->forward(head, head_batch);
  const LossTerms second = loss_->forward(tail, tail_batch);

  EXPECT_NEAR(whole.sum.item<double>(), first.sum.item<double>() + second.sum.item<double>(),
              1e-12 * kRows);
  EXPECT_NEAR(weight_of(whole, batch), weight_of(first, head_batch) + weight_of(second, tail_batch),
              1e-12 * kRows);
}

TEST_P(LossContract, WeightsOfOneChangeNothing) {
  const auto outputs = random_outputs();
  Batch batch = random_batch();
  const double plain = mean_of(loss_->forward(outputs, batch), batch);

  batch.weights = at::ones({kRows}, at::kDouble);

  EXPECT_NEAR(mean_of(loss_->forward(outputs, batch), batch), plain, 1e-12);
}

TEST_P(LossContract, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
  const auto outputs = random_outputs();
  Batch weighted = random_batch();
  const auto [kept, kept_batch] = part(outputs, weighted, 0, kRows - 1);
  Tensors twice;
  for (const at::Tensor& output : kept)
    twice.push_back(at::cat({output, output.slice(0, 0, 1)}));
  Batch twice_batch = kept_batch;
  twice_batch.targets = at::cat({kept_batch.targets, kept_batch.targets.slice(0, 0, 1)});
  twice_batch.rows = at::cat({kept_batch.rows, kept_batch.rows.slice(0, 0, 1)});

  weighted.weights = at::ones({kRows}, at::kDouble);
  weighted.weights[0] = 2;
  weighted.weights[kRows - 1] = 0;

  EXPECT_NEAR(mean_of(loss_->forward(outputs, weighted), weighted),
              mean_of(loss_->forward(twice, twice_batch), twice_batch), 1e-12);
}

TEST_P(LossContract, GradientsAreTheSlopesOfTheSum) {
  for (const bool with_weights : {false, true}) {
    const auto outputs = random_outputs();
    Batch batch = random_batch();
    if (with_weights)
      batch.weights = at::rand({kRows}, at::kDouble);
    for (const at::Tensor& output : outputs)
      output.requires_grad_(true);

    loss_->forward(outputs, batch).sum.backward();

    constexpr double kStep = 1e-6;  // central differences: error ~ kStep^2 plus rounding / kStep
    for (const at::Tensor& output : outputs) {
      const at::Tensor numbers = output.detach().view(-1);
      for (std::int64_t i = 0; i < numbers.numel(); ++i) {
        const double here = numbers[i].item<double>();
        numbers[i] = here + kStep;
        const double above = loss_->forward(outputs, batch).sum.item<double>();
        numbers[i] = here - kStep;
        const double below = loss_->forward(outputs, batch).sum.item<double>();
        numbers[i] = here;
        EXPECT_NEAR(output.grad().view(-1)[i].item<double>(), (above - below) / (2 * kStep), 1e-6);
      }
    }
  }
}

TEST_P(LossContract, SaysWhatOutputsMean) {
  const Predictions said = loss_->predictions(random_outputs());

  ASSERT_EQ(said.kind, target().kind);
  ASSERT_EQ(said.values.dim(), 2);
  EXPECT_EQ(said.values.size(0), kRows);
  if (target().kind == TargetKind::kNumbers) {
    EXPECT_EQ(said.values.size(1), target().width);
    return;
  }
  EXPECT_EQ(said.values.size(1), target().class_count());
  EXPECT_GE(said.values.min().item<double>(), 0);
  EXPECT_TRUE(at::ones({kRows}, at::kDouble).allclose(said.values.sum(1)));
}

}  // namespace treadle::testing
