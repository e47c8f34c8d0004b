#include <treadle/core/training/objective.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/training/draws_samples.h>

namespace treadle {
namespace {

/// Weighted sum of `power`-th powers of the differences; asks for an output of the target's width.
class PowerLoss : public Loss {
 public:
  explicit PowerLoss(double power) : power_(power) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"values", target.shape}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor each = (outputs[0] - target.values()).abs().pow(power_).sum(-1);
    const at::Tensor& weights = target.weights();
    return {weights.defined() ? (each * weights).sum() : each.sum(), {}};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0] * power_};
  }

  double power_;
};

// Rows of one number "price" and of three positions "path", of which the last of row 0 is padding.
const std::vector<TargetSpec> kTargets{number_target("price"),
                                       {"path", TargetKind::kNumbers, {3, 1}}};

Batch two_rows() {
  Batch batch;
  batch.targets = {at::tensor({1.0, 2.0}).view({2, 1}),
                   at::tensor({0.0, 0.0, 9.0, 1.0, 1.0, 1.0}).view({2, 3, 1})};
  batch.original_targets = batch.targets;
  batch.position_weights = {at::Tensor(), at::tensor({1.0, 1.0, 0.0, 1.0, 1.0, 1.0}).view({2, 3})};
  batch.rows = at::arange(2);
  return batch;
}

std::vector<at::Tensor> outputs_for(const Objective& objective) {
  std::vector<at::Tensor> outputs{at::tensor({3.0, 1.0}).view({2, 1}).requires_grad_(true)};
  if (objective.outputs().size() > 1)
    outputs.push_back(
        at::tensor({1.0, 3.0, 0.0, 1.0, 0.0, 2.0}).view({2, 3, 1}).requires_grad_(true));
  return outputs;
}

const PowerLoss kSquared(2);
const PowerLoss kAbsolute(1);

TEST(Objective, OneTermOfFactorOneIsItsSum) {
  const Batch batch = two_rows();
  const Objective objective({{.loss = &kSquared}}, std::span(kTargets).first(1));
  const auto outputs = outputs_for(objective);

  BatchLoss loss{objective.forward(outputs, batch), {}};

  EXPECT_EQ(objective.outputs(), (std::vector<OutputSpec>{{"values", {1}}}));
  EXPECT_TRUE(Objective::Scales(objective, batch).combine(loss).is_same(loss.terms[0].sum));
  EXPECT_EQ(loss.terms[0].sum.item<double>(), 5);
  EXPECT_EQ(loss.terms[0].count, 2);
}

TEST(Objective, RefusesOutputsOfOtherRows) {
  const Objective objective({{&kSquared, 0}}, std::span(kTargets).first(1));
  const auto refusal = [&](const at::Tensor& output) -> std::string {
    try {
      objective.forward({output}, two_rows());
    } catch (const TrainingError& error) {
      return error.what();
    }
    return "";
  };

  EXPECT_EQ(refusal(at::tensor({3.0, 1.0}).view({2, 1})), "");
  EXPECT_NE(refusal(at::tensor({3.0, 1.0, 2.0, 0.0}).view({4, 1}))
                .find("output \"values\" has 4 rows for a batch of 2"),
            std::string::npos);
  // One row would be stretched over all targets without a word.
  EXPECT_NE(refusal(at::tensor({3.0}).view({1, 1})).find("has 1 rows for a batch of 2"),
            std::string::npos);
}

TEST(Objective, NamesTheOutputsOfSeveralTargetsAfterThem) {
  const Objective objective({{&kSquared, 0, 1, "price"}, {&kAbsolute, 1, 1, "path"}}, kTargets);

  EXPECT_EQ(objective.outputs(), (std::vector<OutputSpec>{{"price", {1}}, {"path", {3, 1}}}));
}

TEST(Objective, TermsOfOneTargetShareAnOutput) {
  const Objective objective({{&kSquared, 0, 1, "a"}, {&kAbsolute, 0, 2, "b"}},
                            std::span(kTargets).first(1));
  const Batch batch = two_rows();

  const auto terms = objective.forward(outputs_for(objective), batch);

  EXPECT_EQ(objective.outputs().size(), 1U);
  EXPECT_EQ(terms[0].sum.item<double>(), 5);
  EXPECT_EQ(terms[1].sum.item<double>(), 3);
}

// By hand: 0.5 * (4 + 1) / 2 + 2 * (1 + 3 + 0 + 1 + 1) / 5 = 3.65; what is combined is that times
// the first weight, 2.
TEST(Objective, AddsUpMeansOfItsTermsByFactors) {
  const Batch batch = two_rows();
  const Objective objective({{&kSquared, 0, 0.5, "price"}, {&kAbsolute, 1, 2, "path"}}, kTargets);
  BatchLoss loss{objective.forward(outputs_for(objective), batch), {}};

  const double combined = Objective::Scales(objective, batch).combine(loss).item<double>();

  EXPECT_NEAR(combined, 2 * 3.65, 1e-12);
  const std::vector<double> sums{5, 6};
  const std::vector<double> weights{2, 5};
  EXPECT_NEAR(objective.value(sums, weights), 3.65, 1e-12);
}

TEST(Objective, PartsOfAStepAddUpToTheWhole) {
  const Batch batch = two_rows();
  const Objective objective({{&kSquared, 0, 0.5, "price"}, {&kAbsolute, 1, 2, "path"}}, kTargets);
  const auto outputs = outputs_for(objective);
  const Objective::Scales scales(objective, batch);
  const auto combined = [&](std::int64_t begin, std::int64_t count) {
    std::vector<at::Tensor> part;
    for (const at::Tensor& output : outputs)
      part.push_back(output.narrow(0, begin, count));
    const BatchLoss loss{objective.forward(part, batch.slice(begin, count)), {}};
    return scales.combine(loss).item<double>();
  };

  EXPECT_NEAR(combined(0, 1) + combined(1, 1), combined(0, 2), 1e-12);
}

// By hand: with weights 3 and 1 the first term's mean is (3 * 4 + 1) / 4; the model's term counts
// its sum over rows, 7 / 2. Times the weight of 4.
TEST(Objective, TermsOfTheModelAreMeansOverRows) {
  Batch batch = two_rows();
  batch.weights = at::tensor({3.0, 1.0});
  batch.position_weights.clear();
  const Objective objective({{.loss = &kSquared}}, std::span(kTargets).first(1));
  BatchLoss loss{objective.forward(outputs_for(objective), batch), {{"balance", at::tensor(7.0)}}};

  const double combined = Objective::Scales(objective, batch).combine(loss).item<double>();

  EXPECT_NEAR(combined / 4, 13.0 / 4 + 3.5, 1e-12);
}

/// two_rows() of which each is mixed with the other, by shares 0.75 and 0.25.
Batch two_mixed_rows() {
  Batch batch = two_rows();
  batch.weights = at::tensor({3.0, 1.0});
  batch.mixture.shares = at::tensor({0.75, 0.25});
  batch.mixture.partners = at::tensor({1, 0}, at::kLong);
  batch.look_up_partners(at::kDouble);
  return batch;
}

// By hand: outputs 3 and 1, targets 1 and 2, weights 3 and 1. Row 0: 0.75 * 3 * 4 + 0.25 * 1 * 1,
// row 1: 0.25 * 1 * 1 + 0.75 * 3 * 0; the weights: 0.75 * 3 + 0.25 * 1 + 0.25 * 1 + 0.75 * 3.
TEST(Objective, TheLossOfAMixedRowIsThatOfBothRowsByTheirShares) {
  const Objective objective({{.loss = &kSquared}}, std::span(kTargets).first(1));
  const Batch batch = two_mixed_rows();

  const auto terms = objective.forward(outputs_for(objective), batch);

  EXPECT_NEAR(terms[0].sum.item<double>(), 9.25 + 0.25, 1e-12);
  EXPECT_NEAR(terms[0].weight.item<double>(), 5, 1e-12);
  EXPECT_NEAR(objective.weights(batch)[0].item<double>(), 5, 1e-12);
  EXPECT_EQ(terms[0].count, 2);
  EXPECT_EQ(objective.positions(batch), 2);
}

// Position 2 of row 0 is padding, and stays so where its path is the partner's.
TEST(Objective, PartsOfMixedRowsAddUpToTheWhole) {
  const Batch batch = two_mixed_rows();
  const Objective objective({{&kSquared, 0, 0.5, "price"}, {&kAbsolute, 1, 2, "path"}}, kTargets);
  const auto outputs = outputs_for(objective);
  const Objective::Scales scales(objective, batch);
  const auto combined = [&](std::int64_t begin, std::int64_t count) {
    std::vector<at::Tensor> part;
    for (const at::Tensor& output : outputs)
      part.push_back(output.narrow(0, begin, count));
    const Batch rows = batch.slice(begin, count).with_each([](const at::Tensor& tensor) {
      return tensor.clone();
    });
    const BatchLoss loss{objective.forward(part, rows), {}};
    return scales.combine(loss).item<double>();
  };

  EXPECT_NEAR(combined(0, 1) + combined(1, 1), combined(0, 2), 1e-12);
  EXPECT_NEAR(objective.weights(batch)[1].item<double>(),
              0.75 * 3 * 2 + 0.25 * 1 * 3 + 0.25 * 1 * 3 + 0.75 * 3 * 2, 1e-12);
}

TEST(Objective, ATargetThatIsMixedItselfIsComparedWithOnce) {
  const Objective objective({{.loss = &kSquared}}, std::span(kTargets).first(1));
  Batch batch = two_rows();
  batch.mixture.shares = at::tensor({0.75, 0.25});
  batch.mixture.partners = at::tensor({1, 0}, at::kLong);
  batch.mixture.mixed_targets = {0};
  batch.look_up_partners(at::kDouble);

  EXPECT_NEAR(objective.forward(outputs_for(objective), batch)[0].sum.item<double>(), 5, 1e-12);
}

TEST(Objective, PredictsEachTargetByItsFirstTerm) {
  const Objective objective({{&kSquared, 0, 1, "a"}, {&kAbsolute, 0, 1, "b"}},
                            std::span(kTargets).first(1));

  const Predictions predictions = objective.predictions(outputs_for(objective), two_rows());

  ASSERT_EQ(predictions.size(), 1U);
  EXPECT_EQ(predictions[0].values[0][0].item<double>(), 6) << "squared doubles its outputs";
}

/// Draws its first output plus the seed.
class DrawnLoss final : public PowerLoss, public DrawsSamples {
 public:
  DrawnLoss() : PowerLoss(2) {}

 private:
  at::Tensor do_draw(const std::vector<at::Tensor>& outputs,
                     std::span<const std::uint64_t> seeds) const override {
    at::Tensor drawn = outputs[0].clone();
    for (std::size_t row = 0; row < seeds.size(); ++row)
      drawn[static_cast<std::int64_t>(row)].add_(static_cast<double>(seeds[row]));
    return drawn;
  }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == DrawsSamples::kInterface ? static_cast<DrawsSamples*>(this) : nullptr;
  }
};

TEST(Objective, DrawsSamplesOfATargetFromItsOwnOutputs) {
  const DrawnLoss drawn;
  const Objective objective({{&kSquared, 0}, {&drawn, 1, 1, "drawn"}}, kTargets);
  const std::vector<std::uint64_t> seeds{10, 20};

  EXPECT_EQ(objective.predicts(0), &kSquared);
  EXPECT_EQ(objective.predicts(1), &drawn);
  EXPECT_EQ(Objective({{&drawn, 1}}, kTargets).predicts(0), nullptr);
  const std::vector<at::Tensor> outputs = outputs_for(objective);
  EXPECT_TRUE(at::equal(objective.draw(1, outputs, seeds),
                        outputs[1] + at::tensor({10.0, 20.0}).view({2, 1, 1})));
  EXPECT_THROW(objective.draw(0, outputs, seeds), ContractViolation);
}

TEST(BatchLoss, AddsTermsInPlaceAndAuxiliaryOnesByName) {
  BatchLoss sum{{{at::tensor(1.0), at::tensor(2.0), 2}}, {{"a", at::tensor(1.0)}}};

  sum.add(
      {{{at::tensor(3.0), at::tensor(4.0), 5}}, {{"b", at::tensor(5.0)}, {"a", at::tensor(2.0)}}});

  EXPECT_EQ(sum.terms[0].sum.item<double>(), 4);
  EXPECT_EQ(sum.terms[0].weight.item<double>(), 6);
  EXPECT_EQ(sum.terms[0].count, 7);
  ASSERT_EQ(sum.auxiliary.size(), 2U);
  EXPECT_EQ(sum.auxiliary[0].sum.item<double>(), 3);
  EXPECT_EQ(sum.auxiliary[1].name, "b");
}

}  // namespace
}  // namespace treadle
