// How much each class counts: against PyTorch's losses and scikit-learn's compute_class_weight
// (reference.py prints the numbers).
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/training/fits_targets.h>
#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/tiny_data.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Loss> class_loss(std::string_view name, nlohmann::json class_weights,
                                 nlohmann::json parameters = nlohmann::json::object()) {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  if (!class_weights.is_null())
    parameters["class_weights"] = std::move(class_weights);
  return kPlugin.make<Loss>(name, std::move(parameters));
}

at::Tensor sines(std::int64_t rows, std::int64_t width) {
  return at::arange(rows * width, at::kDouble).mul(1.3).sin().mul(2).view({rows, width});
}

/// Rows whose only target has these classes.
MatrixRows rows_of(const at::Tensor& classes, std::vector<std::string> names) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"x", {}}}, Role::kFeatures, at::kDouble}};
  matrices.spec.targets = {treadle::class_target("kind", std::move(names))};
  matrices.inputs = {classes.to(at::kDouble).view({-1, 1})};
  matrices.targets = {classes};
  return MatrixRows(std::move(matrices));
}

std::vector<std::int64_t> all_of(const RowReader& data) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(data.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

StateDict fit(const Loss& loss, const RowReader& data, std::vector<std::int64_t> rows = {}) {
  return loss.ask<FitsTargets>()->fit(data, rows.empty() ? all_of(data) : rows, 0);
}

std::unique_ptr<Loss> fitted(const Loss& loss, const RowReader& data) {
  return loss.ask<FitsTargets>()->fitted(fit(loss, data));
}

std::vector<double> weights_in(const StateDict& state) {
  const at::Tensor weights = state.tensor("class_weights");
  return {weights.data_ptr<double>(), weights.data_ptr<double>() + weights.numel()};
}

double mean_loss(const Loss& loss, const at::Tensor& outputs, const Batch& batch,
                 const TargetSpec& spec) {
  const auto target = TargetBatch::transformed(batch, 0, spec);
  const LossTerms terms = loss.forward({outputs}, target);
  EXPECT_NEAR(weight_of(terms, target), loss.weight(target).item<double>(), 1e-12);
  return terms.sum.item<double>() / weight_of(terms, target);
}

const at::Tensor kKinds = at::tensor({0, 1, 1, 2, 1, 1, 0, 1, 1, 2, 1, 1}, at::kLong);

TEST(ClassWeights, BalancedAreThoseOfScikitLearn) {
  const MatrixRows three = rows_of(kKinds, {"a", "b", "c"});
  const MatrixRows two = rows_of(kKinds.gt(0).to(at::kLong), {"no", "yes"});

  EXPECT_THAT(weights_in(fit(*class_loss("cross_entropy", "balanced"), three)),
              ElementsAre(2, 0.5, 2));
  EXPECT_THAT(weights_in(fit(*class_loss("bce_with_logits", "balanced"), two)),
              ElementsAre(3, 0.6));
}

TEST(ClassWeights, BalancedLossesAreThoseOfPyTorch) {
  const MatrixRows three = rows_of(kKinds, {"a", "b", "c"});
  const MatrixRows two = rows_of(kKinds.gt(0).to(at::kLong), {"no", "yes"});
  const auto mean = [](const Loss& loss, const MatrixRows& data, std::int64_t width) {
    return mean_loss(loss, sines(12, width), batch_of_target(data.targets(0)),
                     data.spec().targets[0]);
  };
  const auto plain = class_loss("cross_entropy", "balanced");
  const auto smoothed = class_loss("cross_entropy", "balanced", {{"label_smoothing", 0.1}});
  const auto binary = class_loss("bce_with_logits", "balanced");

  EXPECT_NEAR(mean(*fitted(*plain, three), three, 3), 1.6556178351098934, 1e-14);
  EXPECT_NEAR(mean(*fitted(*smoothed, three), three, 3), 1.7476950768287371, 1e-14);
  EXPECT_NEAR(mean(*fitted(*binary, two), two, 1), 1.150970878303028, 1e-14);
}

TEST(ClassWeights, ByNameAreThoseOfAList) {
  const MatrixRows data = rows_of(kKinds, {"a", "b", "c"});
  const Batch batch = batch_of_target(kKinds);
  const TargetSpec& spec = data.spec().targets[0];

  const auto by_name = fitted(*class_loss("cross_entropy", {{"c", 1.25}, {"a", 0.5}}), data);

  EXPECT_EQ(mean_loss(*by_name, sines(12, 3), batch, spec),
            mean_loss(*class_loss("cross_entropy", {0.5, 1, 1.25}), sines(12, 3), batch, spec));
}

TEST(ClassWeights, CountTheRowsThatTrainAlone) {
  const MatrixRows data = rows_of(kKinds, {"a", "b", "c"});

  // Classes a, b, b, b, a: 5 / (2 * 2), 5 / (2 * 3); c is not there.
  EXPECT_THAT(weights_in(fit(*class_loss("cross_entropy", "balanced"), data, {0, 1, 2, 4, 6})),
              ElementsAre(1.25, 5.0 / 6, 1));
}

TEST(ClassWeights, DoNotCountPadding) {
  const MatrixRows data(tiny_texts());  // padding holds the class 0
  const at::Tensor classes = data.targets(0);
  const at::Tensor lengths = data.lengths(0).unsqueeze(1);
  const at::Tensor real = classes.masked_select(at::arange(6, at::kLong).unsqueeze(0).lt(lengths));
  const double odd = real.sum().item<double>();
  const auto all = static_cast<double>(real.numel());

  EXPECT_THAT(weights_in(fit(*class_loss("cross_entropy", "balanced"), data)),
              ElementsAre(all / (2 * (all - odd)), all / (2 * odd)));
}

TEST(ClassWeights, DoNotCountPositionsOfWeightZero) {
  MatrixRows::Matrices matrices = rows_of(kKinds, {"a", "b", "c"}).matrices();
  matrices.position_weights = {kKinds.ne(1).to(at::kDouble)};
  const MatrixRows data(std::move(matrices));

  // Classes a, c, a, c are left: 4 / (2 * 2) each; b is not there.
  EXPECT_THAT(weights_in(fit(*class_loss("cross_entropy", "balanced"), data)),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(weights_in(fit(*class_loss("cross_entropy", "balanced"), data, {0, 1, 3, 9})),
              ElementsAre(1.5, 1, 0.75));
}

TEST(ClassWeights, MultiplyTheWeightsOfRows) {
  const TargetSpec spec = treadle::class_target("kind", {"no", "yes"});
  const auto loss = class_loss("bce_with_logits", {0.5, 2});
  const auto plain = class_loss("bce_with_logits", {1, 1});
  Batch batch = batch_of_target(kKinds.gt(0).to(at::kLong));
  batch.weights = at::arange(12, at::kDouble).div(4);
  Batch by_hand = batch;
  by_hand.weights = batch.weights.mul(batch.targets[0].to(at::kDouble).mul(1.5).add(0.5));

  EXPECT_NEAR(mean_loss(*loss, sines(12, 1), batch, spec),
              mean_loss(*plain, sines(12, 1), by_hand, spec), 1e-14);
}

TEST(ClassWeights, OfALossThatIsSavedAreTheSame) {
  const MatrixRows data = rows_of(kKinds, {"a", "b", "c"});
  const auto loss = class_loss("cross_entropy", "balanced");

  const StateDict state = fit(*loss, data);
  const auto again = loss->ask<FitsTargets>()->fitted(state.snapshot());

  EXPECT_EQ(mean_loss(*again, sines(12, 3), batch_of_target(kKinds), data.spec().targets[0]),
            mean_loss(*fitted(*loss, data), sines(12, 3), batch_of_target(kKinds),
                      data.spec().targets[0]));
}

TEST(ClassWeights, NeedNoTargetsWhereTheyAreListedOrAbsent) {
  const MatrixRows data = rows_of(kKinds, {"a", "b", "c"});

  EXPECT_TRUE(fit(*class_loss("cross_entropy", {1, 2, 3}), data).empty());
  EXPECT_TRUE(fit(*class_loss("cross_entropy", nullptr), data).empty());
}

template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ClassWeights, OfAnUnknownClassAreRefusedWithTheNearest) {
  const TargetSpec spec = treadle::class_target("species", {"setosa", "virginica"});

  EXPECT_THAT(refusal([&] {
                class_loss("cross_entropy", {{"setoza", 2}})->outputs_for(spec);
              }),
              AllOf(HasSubstr("/class_weights"), HasSubstr("no class \"setoza\""),
                    HasSubstr("\"setosa\", \"virginica\""), HasSubstr("did you mean \"setosa\"")));
  EXPECT_THAT(refusal([&] {
                class_loss("cross_entropy", {{"setosa", 0}, {"virginica", 0}})->outputs_for(spec);
              }),
              HasSubstr("above 0"));
  EXPECT_THAT(refusal([] { class_loss("cross_entropy", nlohmann::json::object()); }),
              HasSubstr("at least one class"));
}

TEST(ClassWeights, OfLabelsAreRefusedForPosWeight) {
  EXPECT_THAT(
      refusal([] { class_loss("bce_with_logits", "balanced")->outputs_for(LossCase::labels(3)); }),
      AllOf(HasSubstr("/class_weights"), HasSubstr("labels"), HasSubstr("pos_weight")));
}

LossCase weighted_case(std::string name, std::string loss, std::vector<double> weights,
                       TargetSpec target) {
  return {std::move(name), [loss, weights] { return class_loss(loss, weights); },
          std::move(target)};
}

INSTANTIATE_TEST_SUITE_P(WithClassWeights, LossContract,
                         ::testing::Values(weighted_case("Bce", "bce_with_logits", {0.5, 2},
                                                         LossCase::classes(2)),
                                           weighted_case("BceOfSteps", "bce_with_logits", {0.5, 2},
                                                         LossCase::classes(2, {kVaries}))),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
