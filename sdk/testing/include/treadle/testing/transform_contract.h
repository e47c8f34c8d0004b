#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/matrix_rows.h>
#include <treadle/core/task_random.h>
#include <treadle/core/transform.h>
#include <treadle/testing/at_once.h>
#include <treadle/testing/batches.h>
#include <treadle/testing/case_name.h>

/// What every Transform must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Transforms, TransformContract, ::testing::Values(
///         TransformCase{"Standardize", [] { return plugin().make<Transform>("standardize"); }}),
///         CaseName());
namespace treadle::testing {

struct TransformCase {
  std::string name;
  std::function<std::unique_ptr<Transform>()> make;
  /// Changes training batches at random, from their seed.
  bool augments = false;
  /// Works on images: rows then have an input of them as well, "picture", [2, 6, 5].
  bool images = false;
};

class TransformContract : public ::testing::TestWithParam<TransformCase> {
 protected:
  static constexpr std::int64_t kRows = 60;

  /// Two columns of numbers, a category of three, a column of numbers and a category with missing
  /// values; a number to predict; weights. Rows from 40 on depend on `rest`.
  static MatrixRows table(at::ScalarType dtype = at::kFloat, double rest = 0) {
    const TaskRandom random(5);
    MatrixRows::Matrices matrices;
    Column color{"color", {"blue", "green", "red"}, false};
    Column shape{"shape", {"round", "square"}, true};
    matrices.spec.inputs = {
        {"features", {5}, {{"a", {}, false}, {"b", {}, false}, color, {"c", {}, true}, shape}}};
    matrices.spec.target = {"price", TargetKind::kNumbers, 1, {}};
    matrices.spec.has_weights = true;
    const at::Tensor row = at::arange(kRows, at::kDouble);
    at::Tensor features = at::randn({kRows, 5}, at::kDouble).mul(3).add(10);
    features.select(1, 2).copy_(row.remainder(3));
    features.select(1, 4).copy_(row.remainder(2));
    for (std::int64_t r = 0; r < kRows; r += 7) {
      features[r][3] = std::numeric_limits<double>::quiet_NaN();
      features[r + 1][4] = std::numeric_limits<double>::quiet_NaN();
    }
    features.slice(0, 40).slice(1, 0, 2).add_(rest);
    matrices.inputs = {features.to(dtype).contiguous()};
    matrices.targets = row.mul(2).add(100).view({kRows, 1}).to(dtype);
    matrices.targets.slice(0, 40).add_(rest);
    matrices.weights = row.add(1).to(dtype);
    if (GetParam().images) {
      matrices.spec.inputs.push_back({"picture", {2, 6, 5}, {}});
      at::Tensor pictures = at::randn({kRows, 2, 6, 5}, at::kDouble);
      pictures.slice(0, 40).add_(rest);
      matrices.inputs.push_back(pictures.to(dtype).contiguous());
    }
    return MatrixRows(std::move(matrices));
  }

  /// A reader whose rows from `end` on nobody may see.
  class Fenced final : public RowReader {
   public:
    Fenced(const RowReader& reader, std::int64_t end) : reader_(reader), end_(end) {}

   private:
    const DataSpec& do_spec() const override { return reader_.spec(); }
    std::int64_t do_rows() const override { return reader_.rows(); }
    void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
      for (const std::int64_t row : rows)
        TREADLE_EXPECTS(row < end_, "fit() read row " + std::to_string(row) +
                                        ", which is not among its training rows");
      reader_.gather(rows, out);
    }
    at::Tensor do_targets() const override {
      throw ContractViolation("fit() read the targets of all rows");
    }

    const RowReader& reader_;
    std::int64_t end_;
  };

  /// A transform that knows the first 40 rows.
  static std::unique_ptr<Transform> fitted(const RowReader& reader) {
    auto transform = GetParam().make();
    transform->fit(reader, row_numbers(0, 40));
    return transform;
  }

  static Batch applied(const Transform& transform, Batch batch, const ApplyContext& context = {}) {
    transform.apply(batch, context);
    return batch;
  }
};

TEST_P(TransformContract, BatchesLookAsTheOutputSpecSays) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);

    const DataSpec after = transform->output_spec(reader.spec());
    const Batch batch = applied(*transform, gathered(reader, 0, kRows));

    ASSERT_EQ(batch.inputs.size(), after.inputs.size());
    for (std::size_t port = 0; port < after.inputs.size(); ++port) {
      const PortSpec& spec = after.inputs[port];
      const at::Tensor& input = batch.inputs[port];
      EXPECT_EQ(input.scalar_type(), dtype);
      EXPECT_EQ(input.size(0), kRows);
      EXPECT_EQ(input.sizes().slice(1).vec(), spec.shape);
      if (spec.shape.size() == 1) {
        ASSERT_EQ(static_cast<std::int64_t>(spec.columns.size()), spec.shape[0]);
      }
      for (std::size_t c = 0; c < spec.columns.size(); ++c) {
        if (spec.columns[c].may_be_missing)
          continue;
        EXPECT_FALSE(at::isnan(input.select(1, static_cast<std::int64_t>(c))).any().item<bool>())
            << spec.columns[c].name;
      }
    }
    EXPECT_EQ(batch.targets.scalar_type(), dtype);
    EXPECT_EQ(batch.targets.sizes(), (std::vector<std::int64_t>{kRows, after.target.width}));
  }
}

TEST_P(TransformContract, DoesNotDependOnBatchBoundaries) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);

  const Batch whole = applied(*transform, gathered(reader, 0, kRows));
  const Batch first = applied(*transform, gathered(reader, 0, 1));
  const Batch second = applied(*transform, gathered(reader, 1, kRows));

  for (std::size_t port = 0; port < whole.inputs.size(); ++port)
    EXPECT_TRUE(same(at::cat({first.inputs[port], second.inputs[port]}), whole.inputs[port]));
  EXPECT_TRUE(same(at::cat({first.targets, second.targets}), whole.targets));
}

TEST_P(TransformContract, LearnsFromTheTrainingRowsOnly) {
  const MatrixRows reader = table();
  const MatrixRows other_rest = table(at::kFloat, 1e3);

  const Batch expected = applied(*fitted(reader), gathered(reader, 0, kRows));

  expect_same(applied(*fitted(other_rest), gathered(reader, 0, kRows)), expected);
}

TEST_P(TransformContract, TwoObjectsKnowNothingOfEachOther) {
  const MatrixRows reader = table();
  const Batch expected = applied(*fitted(reader), gathered(reader, 0, kRows));
  const auto one = fitted(reader);

  const auto other = GetParam().make();
  other->fit(table(at::kFloat, 1e3), row_numbers(20, kRows));
  applied(*other, gathered(reader, 0, kRows));

  expect_same(applied(*one, gathered(reader, 0, kRows)), expected);
}

TEST_P(TransformContract, OnlyTrainingIsAugmentedAndItsSeedDecidesHow) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const auto with = [&](bool training, std::uint64_t seed) {
    return applied(*transform, gathered(reader, 0, kRows), {.training = training, .seed = seed});
  };

  const Batch plain = with(false, 1);
  const Batch training = with(true, 1);

  expect_same(with(false, 2), plain);
  expect_same(with(true, 1), training);
  if (GetParam().augments) {
    const Batch other = with(true, 2);
    bool differs = false;
    for (std::size_t port = 0; port < other.inputs.size(); ++port)
      differs = differs || !same(other.inputs[port], training.inputs[port]);
    EXPECT_TRUE(differs);
  } else {
    expect_same(training, plain);
    expect_same(with(true, 2), plain);
  }
}

TEST_P(TransformContract, ColumnsHaveNamesOfTheirOwn) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  for (const PortSpec& port : transform->output_spec(reader.spec()).inputs) {
    std::set<std::string> names;
    for (const Column& column : port.columns)
      EXPECT_TRUE(names.insert(column.name).second) << column.name << " is there twice";
  }
}

TEST_P(TransformContract, ReadsOnlyTheRowsItIsGiven) {
  const MatrixRows rows = table();
  const Fenced reader(rows, 40);

  EXPECT_NO_THROW(fitted(reader));
}

TEST_P(TransformContract, StateRoundTripGivesEqualBatches) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto original = fitted(reader);
    const auto loaded = GetParam().make();

    loaded->load_state(original->state().snapshot());

    expect_same(applied(*loaded, gathered(reader, 0, kRows)),
                applied(*original, gathered(reader, 0, kRows)));
    EXPECT_EQ(loaded->output_spec(reader.spec()), original->output_spec(reader.spec()));
    const at::Tensor predictions = at::arange(3, at::TensorOptions(dtype)).view({3, 1});
    EXPECT_TRUE(at::equal(loaded->invert(predictions), original->invert(predictions)));
  }
}

TEST_P(TransformContract, WritesToNothingButItsBatch) {
  const MatrixRows reader = table();
  const std::string data_before = reader.content_hash();
  const auto transform = fitted(reader);
  const Batch other = gathered(reader, 0, kRows);
  const Batch other_before = copy_of(other);

  applied(*transform, gathered(reader, 0, kRows));

  expect_same(other, other_before);
  EXPECT_EQ(reader.content_hash(), data_before);
}

TEST_P(TransformContract, LeavesOriginalTargetsRowsAndWeightsAlone) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const Batch before = gathered(reader, 0, kRows);

  const Batch after = applied(*transform, gathered(reader, 0, kRows));

  EXPECT_TRUE(same(after.original_targets, before.original_targets));
  EXPECT_TRUE(same(after.rows, before.rows));
  EXPECT_TRUE(same(after.weights, before.weights));
}

TEST_P(TransformContract, InvertUndoesWhatApplyDidToTargets) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);

    const Batch batch = applied(*transform, gathered(reader, 0, kRows));

    const at::Tensor back = transform->invert(batch.targets);
    EXPECT_EQ(back.scalar_type(), dtype);
    EXPECT_TRUE(back.allclose(batch.original_targets, dtype == at::kFloat ? 1e-5 : 1e-12));
  }
}

TEST_P(TransformContract, WorksOnRowsWithoutTargets) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  Batch bare = gathered(reader, 0, kRows);
  bare.targets = bare.original_targets = bare.weights = at::Tensor();

  const Batch batch = applied(*transform, bare);

  EXPECT_FALSE(batch.targets.defined());
  EXPECT_TRUE(same(batch.inputs[0], applied(*transform, gathered(reader, 0, kRows)).inputs[0]));
}

TEST_P(TransformContract, AppliesFromSeveralThreadsAtOnce) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const Batch expected = applied(*transform, gathered(reader, 0, kRows));
  constexpr std::size_t kThreads = 4;
  std::vector<Batch> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 50; ++repeat)
      results[thread] = applied(*transform, gathered(reader, 0, kRows));
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const Batch& result : results)
    expect_same(result, expected);
}

TEST_P(TransformContract, RefusesAnEmptyState) {
  EXPECT_THROW(GetParam().make()->load_state(StateDict()), StorageError);
}

}  // namespace treadle::testing
