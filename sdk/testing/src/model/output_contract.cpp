#include <treadle/testing/model/output_contract.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/evaluated_rows.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// Shared by the claims.
class OutputClaims : public ::testing::WithParamInterface<OutputCase> {
 protected:
  static constexpr std::int64_t kRows = 240;
  static constexpr std::int64_t kFolds = 3;  // and groups, which are the same

  static const TargetSpec& target() { return GetParam().target; }

  std::unique_ptr<OutputStage> started() const {
    auto stage = GetParam().make();
    stage->start(target());
    return stage;
  }
  std::unique_ptr<OutputStage> fitted(const EvaluatedRows& rows) const {
    auto stage = started();
    Prediction prediction = rows.prediction;
    if (stage->needs_folds())
      prediction.fold_numbers = rows.batch.groups;
    stage->fit(prediction, TargetBatch::original(rows.batch, 0, target()));
    return stage;
  }

  /// Predictions as an overconfident model might make them of its targets.
  static EvaluatedRows random_rows(std::uint64_t seed = 31) {
    const TaskRandom random(seed);
    const at::Tensor targets = random_targets(target(), kRows);
    std::vector<std::int64_t> sizes = sizes_of(kRows, target().positions());
    const bool is_classes = target().kind == TargetKind::kClasses;
    sizes.push_back(is_classes ? target().class_count() : target().width());
    at::Tensor noise = at::randn(sizes, at::kDouble).mul(2);
    if (is_classes)
      noise.scatter_add_(-1, targets.unsqueeze(-1), at::ones(sizes, at::kDouble).mul(2));
    if (target().kind == TargetKind::kLabels)
      noise = noise + targets.to(at::kDouble).mul(2) - 1;
    EvaluatedRows rows =
        evaluated_rows(target().kind,
                       is_classes                                   ? noise.softmax(-1)
                       : target().kind == TargetKind::kLabels       ? noise.sigmoid()
                       : target().kind == TargetKind::kDistribution ? noise.softmax(-1)
                                                                    : targets + noise,
                       targets);
    if (is_classes || target().kind == TargetKind::kLabels)
      rows.prediction.logits = noise;
    for (const double level : GetParam().quantiles) {
      rows.prediction.extras.push_back(
          {"q" + std::to_string(level), rows.prediction.values + (level - 0.5), level});
    }
    rows.batch.groups = at::arange(kRows, at::kLong).remainder(kFolds);
    return rows;
  }

  static Prediction applied(const OutputStage& stage, const EvaluatedRows& rows) {
    Prediction prediction = rows.prediction;
    if (stage.needs_folds()) {
      const at::Tensor& values = prediction.values;
      prediction.folds = at::stack({values, values + 0.25, values - 0.5});
    }
    return stage.apply(std::move(prediction), rows.batch);
  }

  static EvaluatedRows part(const EvaluatedRows& rows, std::int64_t begin, std::int64_t end) {
    EvaluatedRows some = rows.part(begin, end);
    some.batch.groups = rows.batch.groups.slice(0, begin, end);
    return some;
  }

  static void expect_close(const Prediction& got, const Prediction& expected, double tolerance) {
    std::vector<at::Tensor> wanted;
    for_each_tensor(expected, [&](const at::Tensor& tensor, std::int64_t /*rows*/) {
      wanted.push_back(tensor);
    });
    std::size_t place = 0;
    for_each_tensor(got, [&](const at::Tensor& tensor, std::int64_t /*rows*/) {
      ASSERT_LT(place, wanted.size()) << "a tensor more";
      EXPECT_EQ(tensor.scalar_type(), wanted[place].scalar_type());
      EXPECT_TRUE(at::allclose(tensor.to(at::kDouble), wanted[place].to(at::kDouble), tolerance,
                               tolerance, /*equal_nan=*/true))
          << "tensor " << place;
      ++place;
    });
    EXPECT_EQ(place, wanted.size()) << "a tensor less";
  }
};

}  // namespace

LINKS_CLAIMS_OF(Output)

CLAIM(Output, KeepsTheShapeAndTheDtype) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    EvaluatedRows rows = random_rows();
    for_each_tensor(rows.prediction,
                    [&](at::Tensor& tensor, std::int64_t) { tensor = tensor.to(dtype); });
    const Prediction after = applied(*fitted(rows), rows);

    EXPECT_EQ(after.kind, rows.prediction.kind);
    EXPECT_EQ(after.values.sizes(), rows.prediction.values.sizes());
    EXPECT_EQ(after.values.scalar_type(), dtype);
    for_each_tensor(after, [&](const at::Tensor& tensor, std::int64_t dimension) {
      EXPECT_EQ(tensor.size(dimension), kRows);
    });
  }
}

CLAIM(Output, ProbabilitiesStayProbabilities) {
  if (target().kind == TargetKind::kNumbers)
    return;
  const EvaluatedRows rows = random_rows();
  const at::Tensor after = applied(*fitted(rows), random_rows(57)).values;

  EXPECT_GE(after.min().item<double>(), 0);
  EXPECT_LE(after.max().item<double>(), 1);
  if (target().kind != TargetKind::kLabels) {
    EXPECT_LT(after.sum(-1).sub(1).abs().max().item<double>(), 1e-12);
  }
}

/// A file is predicted in batches of any size.
CLAIM(Output, ChangesEachRowByItself) {
  const EvaluatedRows rows = random_rows();
  const auto stage = fitted(rows);
  const EvaluatedRows others = random_rows(57);
  const Prediction whole = applied(*stage, others);

  for (const std::int64_t begin : {0, 7, 100}) {
    Prediction expected = whole;
    for_each_tensor(expected, [&](at::Tensor& tensor, std::int64_t dimension) {
      tensor = tensor.slice(dimension, begin, begin + 9);
    });
    expect_close(applied(*stage, part(others, begin, begin + 9)), expected, 1e-12);
  }
}

CLAIM(Output, DoesNotWriteToWhatItIsGiven) {
  const EvaluatedRows rows = random_rows();
  const EvaluatedRows same = random_rows();
  const auto stage = fitted(rows);
  applied(*stage, rows);

  expect_close(rows.prediction, same.prediction, 0);
  EXPECT_TRUE(at::equal(rows.batch.targets[0], same.batch.targets[0]));
}

CLAIM(Output, GoesOnFromItsState) {
  const EvaluatedRows rows = random_rows();
  const auto stage = fitted(rows);
  const auto restored = started();
  restored->load_state(stage->state());

  expect_close(applied(*restored, rows), applied(*stage, rows), 0);
  ASSERT_EQ(restored->learned().size(), stage->learned().size());
  for (std::size_t i = 0; i < stage->learned().size(); ++i)
    EXPECT_EQ(restored->learned()[i].value, stage->learned()[i].value);
}

CLAIM(Output, RefusesTheStateOfSomethingElse) {
  const auto stage = fitted(random_rows());
  const StateDict whole = stage->state();
  StateDict broken;
  for (const auto& [name, tensor] : whole.tensors())
    broken.put(name, at::cat({tensor.reshape(-1), tensor.reshape(-1)}).unsqueeze(0).unsqueeze(0));

  if (!broken.empty()) {
    EXPECT_THROW(started()->load_state(broken), StorageError);
  }
}

CLAIM(Output, DoesNotDependOnTheOrderOfRows) {
  const EvaluatedRows rows = random_rows();
  const TaskRandom random(5);
  const at::Tensor order = at::randperm(kRows, at::kLong);
  EvaluatedRows shuffled =
      rows.with([&](const at::Tensor& tensor) { return tensor.index_select(0, order); });
  shuffled.batch.groups = rows.batch.groups.index_select(0, order);

  expect_close(applied(*fitted(shuffled), rows), applied(*fitted(rows), rows), 1e-6);
}

CLAIM(Output, LearnsNothingFromPadding) {
  EvaluatedRows rows = random_rows();
  rows.batch.position_weights = {padding_weights(target(), rows.batch.targets[0])};
  const auto stage = fitted(rows);
  EvaluatedRows other = rows;
  const EvaluatedRows noise = random_rows(99);
  other.batch.targets = {
      with_padding(rows.batch.targets[0], noise.batch.targets[0], rows.batch.position_weights[0])};
  other.batch.original_targets = other.batch.targets;
  std::vector<at::Tensor> others;
  for_each_tensor(noise.prediction,
                  [&](const at::Tensor& tensor, std::int64_t) { others.push_back(tensor); });
  auto next = others.begin();
  for_each_tensor(other.prediction, [&](at::Tensor& tensor, std::int64_t) {
    tensor = with_padding(tensor, *next++, rows.batch.position_weights[0]);
  });

  const EvaluatedRows unseen = random_rows(57);
  expect_close(applied(*fitted(other), unseen), applied(*stage, unseen), 1e-9);
}

CLAIM(Output, IsAppliedBySeveralThreadsAtOnce) {
  const EvaluatedRows rows = random_rows();
  const auto stage = fitted(rows);
  const Prediction alone = applied(*stage, rows);

  EXPECT_EQ(at_once(3, [&](std::size_t) { expect_close(applied(*stage, rows), alone, 0); }),
            kNoErrors);
}

CLAIM(Output, RefusesATargetItHasNoMeaningFor) {
  const TargetSpec other = other_kind_of(target());
  const auto stage = GetParam().make();
  try {
    stage->start(other);
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()), "");
  }
}

}  // namespace treadle::testing
