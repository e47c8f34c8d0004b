#include <treadle/testing/model/loss_contract.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/training/chunked_loss.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/scale_parameter.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/gradient_check.h>
#include <treadle/testing/support/targets.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {

Batch batch_of_target(const at::Tensor& targets) {
  Batch batch;
  batch.targets = {targets};
  batch.original_targets = batch.targets;
  batch.rows = at::arange(targets.size(0));
  return batch;
}

double weight_of(const LossTerms& terms, const TargetBatch& target) {
  if (terms.weight.defined())
    return terms.weight.item<double>();
  return target.weights().defined() ? target.weights().sum().item<double>()
                                    : static_cast<double>(target.positions());
}

namespace {

/// What the claims share.
class LossClaims : public ::testing::WithParamInterface<LossCase> {
 protected:
  static constexpr std::int64_t kRows = 12;

  using Tensors = std::vector<at::Tensor>;

  /// What a batch weighs by. Rows and padding: both at once.
  enum class Weights { kNone, kRows, kPadding, kRowsAndPadding };
  static constexpr Weights kAllWeights[] = {Weights::kNone, Weights::kRows, Weights::kPadding,
                                            Weights::kRowsAndPadding};

  Tensors random_outputs(at::ScalarType dtype = at::kDouble) const {
    Tensors outputs;
    for (const OutputSpec& output : loss_->outputs_for(target()))
      outputs.push_back(at::randn(sizes_of(kRows, output.shape), dtype));
    return outputs;
  }

  Batch random_batch(at::ScalarType dtype = at::kDouble, Weights weights = Weights::kNone) const {
    Batch batch = batch_of_target(random_targets(target(), kRows, dtype));
    if (weights == Weights::kRows || weights == Weights::kRowsAndPadding)
      batch.weights = at::rand({kRows}, dtype).add(0.25);
    if (weights == Weights::kPadding || weights == Weights::kRowsAndPadding)
      batch.position_weights = {padding_weights(target(), batch.targets[0]).to(dtype)};
    return batch;
  }
  Batch random_batch(Weights weights) const { return random_batch(at::kDouble, weights); }

  TargetBatch target_of(const Batch& batch) const {
    return TargetBatch::transformed(batch, 0, target());
  }
  LossTerms forward(const Tensors& outputs, const Batch& batch) const {
    return loss_->forward(outputs, target_of(batch));
  }

  /// Rows [begin, end) of `batch` and of `outputs`.
  static std::pair<Tensors, Batch> part(const Tensors& outputs, const Batch& batch,
                                        std::int64_t begin, std::int64_t end) {
    Tensors some;
    for (const at::Tensor& output : outputs)
      some.push_back(output.slice(0, begin, end));
    return {some, batch.slice(begin, end - begin)};
  }

  /// With `padding(output)` where `batch` has padding.
  template <typename Padding>
  static Tensors padded(const Tensors& outputs, const Batch& batch, Padding&& padding) {
    Tensors changed;
    for (const at::Tensor& output : outputs)
      changed.push_back(with_padding(output, padding(output), batch.position_weights[0]));
    return changed;
  }

  double weight_in(const LossTerms& terms, const Batch& batch) const {
    return weight_of(terms, target_of(batch));
  }
  double mean_of(const LossTerms& terms, const Batch& batch) const {
    return terms.sum.item<double>() / weight_in(terms, batch);
  }
  void expect_same_terms(const LossTerms& got, const Batch& got_batch, const LossTerms& expected,
                         const Batch& batch) const {
    EXPECT_NEAR(got.sum.item<double>(), expected.sum.item<double>(), kRounding);
    EXPECT_NEAR(weight_in(got, got_batch), weight_in(expected, batch), kRounding);
  }

  /// Outputs for the same target in other units, a · y + b, rescaled by the estimates of `spec`.
  static at::Tensor in_other_units(const at::Tensor& output, const OutputSpec& spec, double a,
                                   double b) {
    Tensors parts;
    const auto count = static_cast<std::int64_t>(spec.estimates.size());
    const std::int64_t width = output.size(-1) / count;
    for (std::int64_t i = 0; i < count; ++i) {
      const at::Tensor part = output.narrow(-1, i * width, width);
      switch (spec.estimates[static_cast<std::size_t>(i)]) {
        case Estimate::kLocation:
          parts.push_back(part.mul(a).add(b));
          break;
        case Estimate::kScale:
          parts.push_back(output_for_scale(scale_of(part).mul(std::abs(a))));
          break;
        case Estimate::kDimensionless:
        case Estimate::kCount:
          parts.push_back(part);
          break;
      }
    }
    return at::cat(parts, -1);
  }

  const TargetSpec& target() const { return GetParam().target; }

  static constexpr double kRounding = 1e-12 * kRows * kLongest;

  TaskRandom random_{17};
  std::unique_ptr<Loss> loss_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Loss)

CLAIM(Loss, AsksForOutputs) {
  const auto outputs = loss_->outputs_for(target());

  ASSERT_FALSE(outputs.empty());
  EXPECT_EQ(loss_->outputs_for(target()), outputs);
  for (const OutputSpec& output : outputs) {
    EXPECT_FALSE(output.name.empty());
    EXPECT_GE(output.width(), 1);
  }
}

CLAIM(Loss, EstimatesNumbersOfTheTarget) {
  if (target().kind != TargetKind::kNumbers)
    return;
  for (const OutputSpec& output : loss_->outputs_for(target())) {
    const auto count = static_cast<std::int64_t>(output.estimates.size());
    EXPECT_TRUE(count == 0 || output.width() == count * target().width())
        << "output \"" << output.name << "\" has " << output.width() << " numbers for "
        << target().width() << " of the target, and " << count
        << " estimates of each: OutputSpec::estimates lists them";
  }
}

// What the estimates say is what predictions do. A loss without any location or scale has
// predictions of its own.
CLAIM(Loss, PredictsInTheUnitsOfItsEstimates) {
  constexpr double kA = 3;
  constexpr double kB = -7;
  const auto outputs = random_outputs();
  const auto specs = loss_->outputs_for(target());
  Tensors changed;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto has = [&](Estimate estimate) {
      const auto& all = specs[i].estimates;
      return std::find(all.begin(), all.end(), estimate) != all.end();
    };
    if (target().kind != TargetKind::kNumbers || has(Estimate::kCount) ||
        !(has(Estimate::kLocation) || has(Estimate::kScale)))
      return;
    changed.push_back(in_other_units(outputs[i], specs[i], kA, kB));
  }

  const Prediction before = loss_->prediction(outputs);
  const Prediction after = loss_->prediction(changed);

  const auto expect_moved = [](const at::Tensor& moved, const at::Tensor& from,
                               const std::string& name) {
    EXPECT_TRUE(at::allclose(moved, from.mul(kA).add(kB), 1e-8, 1e-8)) << name;
  };
  expect_moved(after.values, before.values, "values");
  ASSERT_EQ(after.extras.size(), before.extras.size());
  for (std::size_t i = 0; i < after.extras.size(); ++i)
    expect_moved(after.extras[i].values, before.extras[i].values, after.extras[i].name);
}

CLAIM(Loss, RefusesTheOtherKindOfTarget) {
  EXPECT_THROW(loss_->outputs_for(other_kind_of(target())), DataError);
}

CLAIM(Loss, GivesScalarsInTheOutputsDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Weights weights : kAllWeights) {
      const LossTerms terms = forward(random_outputs(dtype), random_batch(dtype, weights));

      EXPECT_EQ(terms.sum.dim(), 0);
      EXPECT_EQ(terms.sum.scalar_type(), dtype);
      if (terms.weight.defined()) {
        EXPECT_EQ(terms.weight.dim(), 0);
        EXPECT_FALSE(terms.weight.requires_grad());
      }
    }
  }
}

CLAIM(Loss, AddsUpOverPartsOfABatch) {
  if (!loss_->is_additive())
    return;
  for (const Weights weights : kAllWeights) {
    const auto outputs = random_outputs();
    const auto batch = random_batch(weights);
    const auto [head, head_batch] = part(outputs, batch, 0, 5);
    const auto [tail, tail_batch] = part(outputs, batch, 5, kRows);

    const LossTerms whole = forward(outputs, batch);
    const LossTerms first = forward(head, head_batch);
    const LossTerms second = forward(tail, tail_batch);

    EXPECT_NEAR(whole.sum.item<double>(), first.sum.item<double>() + second.sum.item<double>(),
                kRounding);
    EXPECT_NEAR(weight_in(whole, batch),
                weight_in(first, head_batch) + weight_in(second, tail_batch), kRounding);
  }
}

CLAIM(Loss, AddsUpOverChunksOfPositions) {
  if (loss_->ask<ChunksOutputs>() == nullptr)
    return;
  const std::vector<OutputSpec> specs = loss_->outputs_for(target());
  ASSERT_EQ(specs.size(), 1U) << "a loss that ChunksOutputs has one output";
  for (const Weights weights : kAllWeights) {
    const at::Tensor output = random_outputs()[0];
    const Batch batch = random_batch(weights);
    const TargetBatch all = target_of(batch);
    const DeferredOutput deferred{output, [](const at::Tensor& features) { return features; }, {}};
    output.requires_grad_(true);
    forward({output}, batch).sum.backward();
    const at::Tensor expected = output.grad().clone();
    output.mutable_grad().reset();

    const LossTerms terms = chunked_forward(*loss_, deferred, all, 5);
    terms.sum.backward();

    expect_same_terms(terms, batch, forward({output}, batch), batch);
    EXPECT_TRUE(at::allclose(output.grad(), expected, 1e-10, 1e-12));
  }
}

CLAIM(Loss, ItsWeightIsOneUnlessItAddsUp) {
  if (loss_->is_additive())
    return;
  for (const Weights weights : kAllWeights) {
    const auto batch = random_batch(weights);

    EXPECT_EQ(weight_in(forward(random_outputs(), batch), batch), 1);
  }
}

CLAIM(Loss, TheWeightIsAFunctionOfTheTargetAlone) {
  for (const Weights weights : kAllWeights) {
    const auto batch = random_batch(weights);

    const at::Tensor weight = loss_->weight(target_of(batch));

    EXPECT_EQ(weight.dim(), 0);
    for (const auto& outputs : {random_outputs(), random_outputs()})
      EXPECT_NEAR(weight_in(forward(outputs, batch), batch), weight.item<double>(), kRounding);
  }
}

CLAIM(Loss, WeightsOfOneChangeNothing) {
  const auto outputs = random_outputs();
  Batch batch = random_batch();
  const double plain = mean_of(forward(outputs, batch), batch);

  batch.weights = at::ones({kRows}, at::kDouble);
  EXPECT_NEAR(mean_of(forward(outputs, batch), batch), plain, 1e-12);

  batch.position_weights = {at::ones(sizes_of(kRows, target().positions()), at::kDouble)};
  EXPECT_NEAR(mean_of(forward(outputs, batch), batch), plain, 1e-12);
}

CLAIM(Loss, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
  const auto outputs = random_outputs();
  Batch weighted = random_batch();
  const auto [kept, kept_batch] = part(outputs, weighted, 0, kRows - 2);
  Tensors twice;
  for (const at::Tensor& output : kept)
    twice.push_back(at::cat({output, output.slice(0, 0, 1)}));
  const Batch twice_batch =
      batch_of_target(at::cat({kept_batch.targets[0], kept_batch.targets[0].slice(0, 0, 1)}));

  weighted.weights = at::ones({kRows}, at::kDouble);
  weighted.weights[0] = 2;
  weighted.weights.slice(0, kRows - 2).zero_();  // the weights do not add up to the rows

  EXPECT_NEAR(mean_of(forward(outputs, weighted), weighted),
              mean_of(forward(twice, twice_batch), twice_batch), 1e-12);
}

CLAIM(Loss, PaddingChangesNothing) {
  for (const Weights weights : {Weights::kPadding, Weights::kRowsAndPadding}) {
    const auto outputs = random_outputs();
    const auto batch = random_batch(weights);
    const LossTerms expected = forward(outputs, batch);

    Batch other = batch;
    other.targets = {
        with_padding(batch.targets[0], random_targets(target(), kRows), batch.position_weights[0])};
    const auto others =
        padded(outputs, batch, [](const at::Tensor& t) { return at::randn_like(t).mul(100); });

    expect_same_terms(forward(others, other), other, expected, batch);
  }
}

CLAIM(Loss, NaNInPaddingChangesNothing) {
  for (const Weights weights : {Weights::kPadding, Weights::kRowsAndPadding}) {
    const auto outputs = random_outputs();
    const auto batch = random_batch(weights);
    const auto unknown =
        padded(outputs, batch, [](const at::Tensor& t) { return at::full_like(t, NAN); });
    for (const at::Tensor& output : unknown)
      output.requires_grad_(true);

    const LossTerms terms = forward(unknown, batch);
    terms.sum.backward();

    expect_same_terms(terms, batch, forward(outputs, batch), batch);
    for (const at::Tensor& output : unknown)
      EXPECT_TRUE(output.grad().isfinite().all().item<bool>()) << "a gradient is not finite";
  }
}

CLAIM(Loss, PaddingHasNoGradient) {
  for (const Weights weights : {Weights::kPadding, Weights::kRowsAndPadding}) {
    const auto outputs = random_outputs();
    const auto batch = random_batch(weights);
    for (const at::Tensor& output : outputs)
      output.requires_grad_(true);

    forward(outputs, batch).sum.backward();

    for (const at::Tensor& output : outputs) {
      const at::Tensor counted = at::zeros_like(output);
      const at::Tensor of_padding = with_padding(counted, output.grad(), batch.position_weights[0]);
      EXPECT_EQ(of_padding.abs().max().item<double>(), 0);
    }
  }
}

CLAIM(Loss, APaddedBatchEqualsItsRowsOneByOne) {
  if (!loss_->is_additive())
    return;
  for (const Weights weights : {Weights::kPadding, Weights::kRowsAndPadding}) {
    const auto outputs = random_outputs();
    const auto batch = random_batch(weights);
    const at::Tensor& padding = batch.position_weights[0];
    double sum = 0;
    double weight = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto alone = [&](const at::Tensor& tensor) {
        return row_alone(tensor, padding, batch.targets[0], row);
      };
      Batch one = batch_of_target(alone(batch.targets[0]));
      if (batch.weights.defined())
        one.weights = batch.weights.slice(0, row, row + one.size());
      Tensors its;
      for (const at::Tensor& output : outputs)
        its.push_back(alone(output));
      if (one.size() == 0)
        continue;
      const LossTerms terms = forward(its, one);
      sum += terms.sum.item<double>();
      weight += weight_in(terms, one);
    }

    const LossTerms whole = forward(outputs, batch);
    EXPECT_NEAR(whole.sum.item<double>(), sum, kRounding);
    EXPECT_NEAR(weight_in(whole, batch), weight, kRounding);
  }
}

CLAIM(Loss, GradientsAreTheSlopesOfTheSum) {
  for (const Weights weights : kAllWeights) {
    const auto outputs = random_outputs();
    const Batch batch = random_batch(weights);
    std::vector<Differentiated> inputs;
    for (const at::Tensor& output : outputs)
      inputs.push_back({"output " + std::to_string(inputs.size()), output});

    EXPECT_TRUE(gradients_match([&] { return forward(outputs, batch).sum; }, inputs))
        << "weights " << static_cast<int>(weights);
  }
}

CLAIM(Loss, TheWeightHasNoGradient) {
  const auto outputs = random_outputs();
  for (const at::Tensor& output : outputs)
    output.requires_grad_(true);

  const LossTerms terms = forward(outputs, random_batch());

  EXPECT_TRUE(terms.sum.requires_grad());
  EXPECT_FALSE(terms.weight.defined() && terms.weight.requires_grad());
}

CLAIM(Loss, MeasuresAgainstTheTargetsAsTransformsLeaveThem) {
  const auto outputs = random_outputs();
  Batch batch = random_batch();
  const double plain = mean_of(forward(outputs, batch), batch);

  batch.original_targets = {batch.targets[0].mul(0)};

  EXPECT_EQ(mean_of(forward(outputs, batch), batch), plain);
}

CLAIM(Loss, LeavesOutputsAndBatchAlone) {
  const auto outputs = random_outputs();
  const Batch batch = random_batch(Weights::kRowsAndPadding);
  std::vector<at::Tensor> outputs_before;
  for (const at::Tensor& output : outputs)
    outputs_before.push_back(output.clone());
  const Batch before = copy_of(batch);

  forward(outputs, batch);
  loss_->weight(target_of(batch));
  loss_->prediction(outputs);

  EXPECT_TRUE(same_bits(outputs, outputs_before));
  expect_same(batch, before);
}

CLAIM(Loss, StaysFiniteForSureOutputs) {
  if (GetParam().overflows)
    return;
  for (const double size : {-1000.0, 0.0, 1000.0}) {
    Tensors outputs;
    for (const at::Tensor& output : random_outputs(at::kFloat)) {
      const at::Tensor sure = at::full_like(output, size);
      sure.select(0, 0).neg_();
      outputs.push_back(sure.requires_grad_(true));
    }

    const LossTerms terms = forward(outputs, random_batch(at::kFloat));
    terms.sum.backward();

    EXPECT_TRUE(std::isfinite(terms.sum.item<double>())) << "outputs of " << size;
    for (const at::Tensor& output : outputs)
      EXPECT_TRUE(output.grad().isfinite().all().item<bool>()) << "outputs of " << size;
    EXPECT_TRUE(loss_->prediction(outputs).values.isfinite().all().item<bool>());
  }
}

CLAIM(Loss, SeveralThreadsMayUseItAtOnce) {
  const auto outputs = random_outputs();
  const auto batch = random_batch();
  const at::Tensor expected = forward(outputs, batch).sum;
  constexpr std::size_t kThreads = 4;
  std::vector<at::Tensor> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      results[thread] = forward(outputs, batch).sum;
      loss_->prediction(outputs);
    }
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const at::Tensor& result : results)
    EXPECT_TRUE(values_match(result, expected));
}

CLAIM(Loss, SaysWhatOutputsMean) {
  const Prediction said = loss_->prediction(random_outputs());

  // A distribution is predicted as classes are: a loss for both need not tell them apart.
  ASSERT_TRUE(said.kind == target().kind ||
              (said.kind == TargetKind::kClasses && target().kind == TargetKind::kDistribution));
  std::vector<std::int64_t> sizes = sizes_of(kRows, target().positions());
  sizes.push_back(target().kind == TargetKind::kClasses ? target().class_count()
                                                        : target().width());
  ASSERT_EQ(said.values.sizes(), at::IntArrayRef(sizes));
  std::set<std::string> names;
  for (const Prediction::Extra& extra : said.extras) {
    EXPECT_TRUE(!extra.name.empty() && names.insert(extra.name).second) << extra.name;
    EXPECT_EQ(extra.values.sizes(), said.values.sizes()) << extra.name;
  }
  if (target().kind == TargetKind::kNumbers)
    return;
  EXPECT_GE(said.values.min().item<double>(), 0);
  EXPECT_LE(said.values.max().item<double>(), 1);
  if (target().kind != TargetKind::kLabels) {
    EXPECT_TRUE(said.values.sum(-1).sub(1).abs().max().item<double>() < 1e-12);
  }
}

// Each row has a seed of its own, so samples do not depend on how rows are put into batches.
CLAIM(Loss, ItsDrawsAreThoseOfEachRowAndSeed) {
  const auto* const draws = loss_->ask<DrawsSamples>();
  if (draws == nullptr)
    GTEST_SKIP() << "is no distribution";
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto outputs = random_outputs(dtype);
    std::vector<std::uint64_t> seeds(kRows);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      seeds[i] = 100 + i * i;

    const at::Tensor drawn = draws->draw(outputs, seeds);

    EXPECT_EQ(drawn.sizes(), loss_->prediction(outputs).values.sizes());
    EXPECT_EQ(drawn.scalar_type(), dtype);
    EXPECT_TRUE(drawn.isfinite().all().item<bool>());
    EXPECT_TRUE(at::equal(draws->draw(outputs, seeds), drawn));
    // Tensor operations may round the last numbers of a tensor in another way.
    const double rounding = dtype == at::kFloat ? 1e-5 : 1e-12;
    std::int64_t others = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      Tensors alone;
      for (const at::Tensor& output : outputs)
        alone.push_back(output.slice(0, row, row + 1));
      const std::uint64_t seed = seeds[static_cast<std::size_t>(row)];
      EXPECT_TRUE(draws->draw(alone, {&seed, 1})[0].allclose(drawn[row], rounding, rounding))
          << row;
      const std::uint64_t other = seed + 1;
      if (!draws->draw(alone, {&other, 1})[0].allclose(drawn[row], rounding, rounding))
        ++others;
    }
    // Not each: of few numbers one may be drawn again.
    EXPECT_GT(others, kRows / 2) << "another seed draws the same";
    if (target().position_dimensions() == 0)
      continue;
    // Fewer positions in front of the padding.
    Tensors shorter;
    for (const at::Tensor& output : outputs)
      shorter.push_back(output.slice(1, 0, output.size(1) - 1));
    EXPECT_TRUE(draws->draw(shorter, seeds)
                    .allclose(drawn.slice(1, 0, drawn.size(1) - 1), rounding, rounding));
  }
}

CLAIM(Loss, TermsAndGradientsAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Weights weights : kAllWeights) {
      SCOPED_TRACE(std::string(dtype == at::kFloat ? "float32" : "float64") + ", weights " +
                   std::to_string(static_cast<int>(weights)));
      const auto outputs = random_outputs(dtype);
      const Batch batch = random_batch(dtype, weights);
      const auto results_on = [&](c10::Device where) {
        const Batch there = batch.to(where);
        Tensors given;
        for (const at::Tensor& output : outputs)
          given.push_back(output.to(where).detach().requires_grad_(true));
        NamedResults results;
        const at::Tensor weight = loss_->weight(target_of(there));
        const LossTerms terms = forward(given, there);
        terms.sum.backward();
        EXPECT_EQ(terms.sum.device(), where) << "of the sum";
        EXPECT_EQ(weight.device(), where) << "of weight()";
        add_result(results, "weight()", weight);
        add_result(results, "sum", terms.sum);
        add_result(results, "weight", terms.weight);
        for (std::size_t i = 0; i < given.size(); ++i)
          add_result(results, "gradient of output " + std::to_string(i), given[i].grad());
        const at::NoGradGuard no_gradients;
        const Prediction prediction = loss_->prediction(given);
        add_result(results, "prediction", prediction.values);
        for (const Prediction::Extra& extra : prediction.extras)
          add_result(results, extra.name, extra.values);
        return results;
      };

      expect_results(results_on(device->device()), results_on(c10::kCPU), device->closeness(dtype));
    }
  }
}

}  // namespace treadle::testing
