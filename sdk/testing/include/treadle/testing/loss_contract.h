#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/loss.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/at_once.h>
#include <treadle/testing/batches.h>
#include <treadle/testing/case_name.h>
#include <treadle/testing/gradient_check.h>
#include <treadle/testing/targets.h>

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
  /// Outputs of 1000 are too much for it: it grows like an exponential.
  bool overflows = false;

  static TargetSpec numbers(std::int64_t width) { return number_target(width); }
  static TargetSpec classes(std::int64_t count) { return class_target(count); }
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
    batch.targets = random_targets(target(), kRows, dtype);
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
  EXPECT_EQ(loss_->outputs_for(target()), outputs);
  for (const OutputSpec& output : outputs) {
    EXPECT_FALSE(output.name.empty());
    EXPECT_GE(output.width, 1);
  }
}

TEST_P(LossContract, RefusesTheOtherKindOfTarget) {
  EXPECT_THROW(loss_->outputs_for(other_kind_of(target())), DataError);
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
  const auto [kept, kept_batch] = part(outputs, weighted, 0, kRows - 2);
  Tensors twice;
  for (const at::Tensor& output : kept)
    twice.push_back(at::cat({output, output.slice(0, 0, 1)}));
  Batch twice_batch = kept_batch;
  twice_batch.targets = at::cat({kept_batch.targets, kept_batch.targets.slice(0, 0, 1)});
  twice_batch.original_targets = twice_batch.targets;
  twice_batch.rows = at::cat({kept_batch.rows, kept_batch.rows.slice(0, 0, 1)});

  weighted.weights = at::ones({kRows}, at::kDouble);
  weighted.weights[0] = 2;
  weighted.weights.slice(0, kRows - 2).zero_();  // the weights do not add up to the rows

  EXPECT_NEAR(mean_of(loss_->forward(outputs, weighted), weighted),
              mean_of(loss_->forward(twice, twice_batch), twice_batch), 1e-12);
}

TEST_P(LossContract, GradientsAreTheSlopesOfTheSum) {
  for (const bool with_weights : {false, true}) {
    const auto outputs = random_outputs();
    Batch batch = random_batch();
    if (with_weights)
      batch.weights = at::rand({kRows}, at::kDouble);
    std::vector<Differentiated> inputs;
    for (const at::Tensor& output : outputs)
      inputs.push_back({"output " + std::to_string(inputs.size()), output});

    EXPECT_TRUE(gradients_match([&] { return loss_->forward(outputs, batch).sum; }, inputs))
        << (with_weights ? "with weights" : "without weights");
  }
}

TEST_P(LossContract, TheWeightHasNoGradient) {
  const auto outputs = random_outputs();
  for (const at::Tensor& output : outputs)
    output.requires_grad_(true);

  const LossTerms terms = loss_->forward(outputs, random_batch());

  EXPECT_TRUE(terms.sum.requires_grad());
  EXPECT_FALSE(terms.weight.defined() && terms.weight.requires_grad());
}

TEST_P(LossContract, MeasuresAgainstTheTargetsAsTransformsLeaveThem) {
  const auto outputs = random_outputs();
  Batch batch = random_batch();
  const double plain = mean_of(loss_->forward(outputs, batch), batch);

  batch.original_targets = batch.targets.mul(0);

  EXPECT_EQ(mean_of(loss_->forward(outputs, batch), batch), plain);
}

TEST_P(LossContract, LeavesOutputsAndBatchAlone) {
  const auto outputs = random_outputs();
  Batch batch = random_batch();
  batch.weights = at::rand({kRows}, at::kDouble);
  std::vector<at::Tensor> outputs_before;
  for (const at::Tensor& output : outputs)
    outputs_before.push_back(output.clone());
  const Batch before = copy_of(batch);

  loss_->forward(outputs, batch);
  loss_->predictions(outputs);

  EXPECT_TRUE(same_bits(outputs, outputs_before));
  expect_same(batch, before);
}

TEST_P(LossContract, StaysFiniteForSureOutputs) {
  if (GetParam().overflows)
    return;
  for (const double size : {-1000.0, 0.0, 1000.0}) {
    Tensors outputs;
    for (const at::Tensor& output : random_outputs(at::kFloat)) {
      const at::Tensor sure = at::full_like(output, size);
      sure.select(0, 0).neg_();
      outputs.push_back(sure.requires_grad_(true));
    }

    const LossTerms terms = loss_->forward(outputs, random_batch(at::kFloat));
    terms.sum.backward();

    EXPECT_TRUE(std::isfinite(terms.sum.item<double>())) << "outputs of " << size;
    for (const at::Tensor& output : outputs)
      EXPECT_TRUE(output.grad().isfinite().all().item<bool>()) << "outputs of " << size;
    EXPECT_TRUE(loss_->predictions(outputs).values.isfinite().all().item<bool>());
  }
}

TEST_P(LossContract, SeveralThreadsMayUseItAtOnce) {
  const auto outputs = random_outputs();
  const auto batch = random_batch();
  const at::Tensor expected = loss_->forward(outputs, batch).sum;
  constexpr std::size_t kThreads = 4;
  std::vector<at::Tensor> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      results[thread] = loss_->forward(outputs, batch).sum;
      loss_->predictions(outputs);
    }
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const at::Tensor& result : results)
    EXPECT_TRUE(values_match(result, expected));
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
