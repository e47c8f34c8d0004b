#include <treadle/testing/data/transform_contract.h>

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
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/fits_groups.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/transform.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class TransformClaims : public ::testing::WithParamInterface<TransformCase> {
 protected:
  static constexpr std::int64_t kRows = 60;

  /// "features": two columns of numbers and one with missing values; "categories": one of three and
  /// one with missing values; "series": two numbers for each of 1 to 4 time steps, with its
  /// lengths. Targets: a number, a class, and a number for each time step; weights; three groups.
  /// Rows from 40 on depend on `rest`.
  static MatrixRows table(at::ScalarType dtype = at::kFloat, double rest = 0) {
    constexpr std::int64_t kLongest = 4;
    const TaskRandom random(5);
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"features", {3}, {{"a", {}}, {"b", {}}, {"c", {}, true}}, Role::kFeatures, dtype},
        {"categories",
         {2},
         {{"color", {"blue", "green", "red"}}, {"shape", {"round", "square"}, true}},
         Role::kCategories,
         at::kLong},
        {"series", {kVaries, 2}, {}, Role::kFeatures, dtype},
        {"series.lengths", {}, {}, Role::kLengths, at::kLong, 0, "series"}};
    matrices.spec.targets = {treadle::number_target("price"),
                             treadle::class_target("kind", {"old", "new"}),
                             {"steps", TargetKind::kNumbers, {kVaries, 1}, {}, "series"}};
    matrices.spec.has_weights = true;
    const at::Tensor row = at::arange(kRows, at::kDouble);
    const at::Tensor number = at::arange(kRows, at::kLong);
    at::Tensor features = at::randn({kRows, 3}, at::kDouble).mul(3).add(10);
    at::Tensor categories = at::stack({number.remainder(3), number.remainder(2)}, 1);
    for (std::int64_t r = 0; r < kRows; r += 7) {
      features[r][2] = std::numeric_limits<double>::quiet_NaN();
      categories[r + 1 < kRows ? r + 1 : r][1] = -1;
    }
    features.slice(0, 40).slice(1, 0, 2).add_(rest);
    const at::Tensor lengths = number.mul(3).remainder(kLongest).add(1);
    const at::Tensor real = at::arange(kLongest).unsqueeze(0).lt(lengths.unsqueeze(1));
    at::Tensor series = at::randn({kRows, kLongest, 2}, at::kDouble).add(5);
    series.slice(0, 40).add_(rest);
    series.mul_(real.unsqueeze(2));
    matrices.inputs = {features.to(dtype).contiguous(), categories.contiguous(),
                       series.to(dtype).contiguous(), lengths};
    at::Tensor price = row.mul(2).add(100).view({kRows, 1}).to(dtype);
    price.slice(0, 40).add_(rest);
    matrices.targets = {price, number.remainder(2), series.sum(2, true).to(dtype).contiguous()};
    matrices.weights = row.add(1).to(dtype);
    matrices.groups = number.remainder(3).mul(10);
    if (GetParam().images) {
      matrices.spec.inputs.push_back({"picture", {2, 6, 5}, {}, Role::kImage, dtype});
      // Levels of colors are from 0 to 1.
      at::Tensor pictures = at::rand({kRows, 2, 6, 5}, at::kDouble).mul(0.5);
      if (rest != 0)
        pictures.slice(0, 40).add_(0.5);
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
    at::Tensor do_targets(std::size_t) const override {
      throw ContractViolation("fit() read the targets of all rows");
    }

    at::Tensor do_position_weights(std::size_t target) const override {
      return reader_.position_weights(target);
    }
    at::Tensor do_lengths(std::size_t input) const override { return reader_.lengths(input); }
    at::Tensor do_groups() const override { return reader_.groups(); }

    const RowReader& reader_;
    std::int64_t end_;
  };

  static bool fits_shape(const at::Tensor& values, const std::vector<std::int64_t>& shape) {
    if (values.dim() != static_cast<std::int64_t>(shape.size()) + 1)
      return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != kVaries && shape[d] != values.size(static_cast<std::int64_t>(d) + 1))
        return false;
    }
    return true;
  }

  static void expect_column(const Column& column, const at::Tensor& values) {
    SCOPED_TRACE(column.name);
    if (column.categories.empty()) {
      EXPECT_TRUE(column.may_be_missing || !at::isnan(values).any().item<bool>());
      return;
    }
    EXPECT_GE(values.min().item<std::int64_t>(), column.may_be_missing ? -1 : 0);
    EXPECT_LT(values.max().item<std::int64_t>(),
              static_cast<std::int64_t>(column.categories.size()));
  }

  /// A transform that knows the first 40 rows.
  static std::unique_ptr<Transform> fitted(const RowReader& reader) {
    auto transform = GetParam().make();
    transform->fit(reader, row_numbers(0, 40));
    return transform;
  }

  /// All rows, with pictures of bytes; the others where `bytes` is false have the same numbers.
  static Batch with_bytes(const MatrixRows& reader, bool bytes) {
    Batch batch = gathered(reader, 0, kRows);
    const TaskRandom random(9);
    batch.inputs.back() = at::randint(0, 256, batch.inputs.back().sizes(), at::kByte);
    if (!bytes)
      batch.inputs.back() = batch.inputs.back().to(at::kFloat);
    return batch;
  }

  /// Training and evaluation, by tensor operations on `device`; inputs on the CPU.
  static NamedResults prepared_on(c10::Device device, const Transform& transform,
                                  const RowReader& reader) {
    NamedResults results;
    for (const bool training : {false, true}) {
      const Batch batch = applied(transform, gathered(reader, 0, kRows).to(device),
                                  {.training = training, .seed = 3, .tensors_only = true});
      for (std::size_t port = 0; port < batch.inputs.size(); ++port) {
        EXPECT_EQ(batch.inputs[port].device(), device) << "input " << port;
        add_result(results, (training ? "training, input " : "input ") + std::to_string(port),
                   batch.inputs[port]);
      }
    }
    return results;
  }

  static Batch applied(const Transform& transform, Batch batch, const ApplyContext& context = {}) {
    transform.apply(batch, context);
    return batch;
  }
};

}  // namespace

LINKS_CLAIMS_OF(Transform)

CLAIM(Transform, BatchesLookAsTheOutputSpecSays) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);

    const DataSpec after = transform->output_spec(reader.spec());
    const Batch batch = applied(*transform, gathered(reader, 0, kRows));

    ASSERT_EQ(batch.inputs.size(), after.inputs.size());
    for (std::size_t port = 0; port < after.inputs.size(); ++port) {
      const PortSpec& spec = after.inputs[port];
      SCOPED_TRACE(spec.name);
      const at::Tensor& input = batch.inputs[port];
      EXPECT_EQ(input.scalar_type(), spec.dtype);
      EXPECT_EQ(input.size(0), kRows);
      EXPECT_TRUE(fits_shape(input, spec.shape));
      if (spec.shape.size() == 1) {
        ASSERT_EQ(static_cast<std::int64_t>(spec.columns.size()), spec.shape[0]);
      }
      for (std::size_t c = 0; c < spec.columns.size(); ++c)
        expect_column(spec.columns[c], input.select(1, static_cast<std::int64_t>(c)));
    }
    ASSERT_EQ(batch.targets.size(), after.targets.size());
    for (std::size_t i = 0; i < after.targets.size(); ++i) {
      EXPECT_EQ(batch.targets[i].scalar_type(),
                after.targets[i].kind == TargetKind::kClasses ? at::kLong : dtype);
      EXPECT_TRUE(fits_shape(batch.targets[i], after.targets[i].shape)) << after.targets[i].name;
    }
  }
}

// Alone, a row has no padding but what its port always has.
CLAIM(Transform, PaddingIsZeroAndChangesNothing) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const DataSpec after = transform->output_spec(reader.spec());
  const std::size_t series = after.input_index("series");
  const std::size_t steps = after.target_index("steps");
  for (const bool training : {false, true}) {
    const ApplyContext context{.training = training, .seed = 1};
    const Batch whole = applied(*transform, gathered(reader, 0, kRows), context);
    for (std::int64_t row = 0; row < 8; ++row) {
      const Batch alone = applied(*transform, gathered(reader, row, row + 1));
      const std::int64_t length = alone.inputs[series].size(1);
      EXPECT_FALSE(whole.inputs[series][row].slice(0, length).any().item<bool>()) << row;
      if (training)
        continue;
      EXPECT_TRUE(same(whole.inputs[series][row].slice(0, 0, length), alone.inputs[series][0]));
      EXPECT_TRUE(same(whole.targets[steps][row].slice(0, 0, length), alone.targets[steps][0]));
    }
  }
}

CLAIM(Transform, DoesNotDependOnBatchBoundaries) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);

  const Batch whole = applied(*transform, gathered(reader, 0, kRows));
  const Batch first = applied(*transform, gathered(reader, 0, 2));  // row 1 has a longest series
  const Batch second = applied(*transform, gathered(reader, 2, kRows));

  for (std::size_t port = 0; port < whole.inputs.size(); ++port)
    EXPECT_TRUE(same(at::cat({first.inputs[port], second.inputs[port]}), whole.inputs[port]));
  for (std::size_t i = 0; i < whole.targets.size(); ++i)
    EXPECT_TRUE(same(at::cat({first.targets[i], second.targets[i]}), whole.targets[i]));
}

CLAIM(Transform, LearnsFromTheTrainingRowsOnly) {
  const MatrixRows reader = table();
  const MatrixRows other_rest = table(at::kFloat, 1e3);

  const Batch expected = applied(*fitted(reader), gathered(reader, 0, kRows));

  expect_same(applied(*fitted(other_rest), gathered(reader, 0, kRows)), expected);
}

CLAIM(Transform, TwoObjectsKnowNothingOfEachOther) {
  const MatrixRows reader = table();
  const Batch expected = applied(*fitted(reader), gathered(reader, 0, kRows));
  const auto one = fitted(reader);

  const auto other = GetParam().make();
  other->fit(table(at::kFloat, 1e3), row_numbers(20, kRows));
  applied(*other, gathered(reader, 0, kRows));

  expect_same(applied(*one, gathered(reader, 0, kRows)), expected);
}

CLAIM(Transform, OnlyTrainingIsAugmentedAndItsSeedDecidesHow) {
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

CLAIM(Transform, ColumnsHaveNamesOfTheirOwn) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  for (const PortSpec& port : transform->output_spec(reader.spec()).inputs) {
    std::set<std::string> names;
    for (const Column& column : port.columns)
      EXPECT_TRUE(names.insert(column.name).second) << column.name << " is there twice";
  }
}

CLAIM(Transform, ReadsOnlyTheRowsItIsGiven) {
  const MatrixRows rows = table();
  const Fenced reader(rows, 40);

  EXPECT_NO_THROW(fitted(reader));
}

CLAIM(Transform, StateRoundTripGivesEqualBatches) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto original = fitted(reader);
    const auto loaded = GetParam().make();

    loaded->load_state(original->state().snapshot());

    expect_same(applied(*loaded, gathered(reader, 0, kRows)),
                applied(*original, gathered(reader, 0, kRows)));
    EXPECT_EQ(loaded->output_spec(reader.spec()), original->output_spec(reader.spec()));
    const at::Tensor predictions = at::arange(3, at::TensorOptions(dtype)).view({3, 1});
    const at::Tensor groups = reader.groups().slice(0, 0, 3);
    for (const char* target : {"price", "steps"}) {
      EXPECT_TRUE(at::equal(loaded->invert(predictions, target, groups),
                            original->invert(predictions, target, groups)));
    }
  }
}

CLAIM(Transform, WritesToNothingButItsBatch) {
  const MatrixRows reader = table();
  const std::string data_before = reader.content_hash();
  const auto transform = fitted(reader);
  const Batch other = gathered(reader, 0, kRows);
  const Batch other_before = copy_of(other);

  applied(*transform, gathered(reader, 0, kRows));

  expect_same(other, other_before);
  EXPECT_EQ(reader.content_hash(), data_before);
}

CLAIM(Transform, LeavesOriginalTargetsRowsGroupsAndWeightsAlone) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const Batch before = gathered(reader, 0, kRows);

  const Batch after = applied(*transform, gathered(reader, 0, kRows));

  testing::expect_same(after.original_targets, before.original_targets, "original target");
  testing::expect_same(after.position_weights, before.position_weights, "position weights");
  EXPECT_TRUE(same(after.rows, before.rows));
  EXPECT_TRUE(same(after.weights, before.weights));
  EXPECT_TRUE(same(after.groups, before.groups));
}

CLAIM(Transform, InvertUndoesWhatApplyDidToTargets) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);

    const Batch batch = applied(*transform, gathered(reader, 0, kRows));

    for (const char* target : {"price", "steps"}) {
      const std::size_t i = reader.spec().target_index(target);
      const at::Tensor back = transform->invert(batch.targets[i], target, batch.groups);
      EXPECT_EQ(back.scalar_type(), dtype);
      const double tolerance = dtype == at::kFloat ? 1e-5 : 1e-12;
      EXPECT_TRUE(back.allclose(batch.original_targets[i], tolerance, tolerance)) << target;
    }
  }
}

CLAIM(Transform, KnowsTheGroupsOfItsTrainingRowsByTheirNumbers) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  const auto* const by_group = transform->ask<FitsGroups>();
  if (by_group == nullptr)
    GTEST_SKIP() << "has statistics of all rows alone";
  EXPECT_TRUE(at::equal(by_group->groups(), at::arange(0, 30, 10, at::kLong)));

  const Batch rows = gathered(reader, 0, kRows);
  const at::Tensor& prices = rows.targets[0];
  const bool changes_prices =
      !same(transform->invert(prices.clone(), "price", rows.groups), prices);
  Batch without = copy_of(rows);
  without.groups = at::Tensor();
  EXPECT_THROW(applied(*transform, without), DataError);
  if (changes_prices) {
    EXPECT_THROW(transform->invert(prices, "price"), DataError);
  }
  Batch of_others = copy_of(rows);
  of_others.groups[3] = 7;
  if (by_group->takes_other_groups()) {
    EXPECT_NO_THROW(applied(*transform, copy_of(of_others)));
    EXPECT_NO_THROW(transform->invert(prices, "price", of_others.groups));
  } else {
    EXPECT_THROW(applied(*transform, copy_of(of_others)), DataError);
    if (changes_prices) {
      EXPECT_THROW(transform->invert(prices, "price", of_others.groups), DataError);
    }
  }
}

CLAIM(Transform, WorksOnRowsWithoutTargets) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  Batch bare = gathered(reader, 0, kRows);
  bare.targets.clear();
  bare.original_targets.clear();
  bare.position_weights.clear();
  bare.weights = at::Tensor();

  const Batch batch = applied(*transform, bare);

  EXPECT_TRUE(batch.targets.empty());
  DataSpec spec = reader.spec();
  spec.targets.clear();
  EXPECT_EQ(transform->output_spec(spec).inputs, transform->output_spec(reader.spec()).inputs);
  EXPECT_TRUE(same(batch.inputs[0], applied(*transform, gathered(reader, 0, kRows)).inputs[0]));
}

CLAIM(Transform, AppliesFromSeveralThreadsAtOnce) {
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

CLAIM(Transform, ADevicePartChangesInputsAlone) {
  const MatrixRows reader = table();
  const auto transform = fitted(reader);
  if (!transform->works_on_device())
    GTEST_SKIP() << "works on the host";
  const DataSpec before = reader.spec();
  const DataSpec after = transform->output_spec(before);
  ASSERT_EQ(after.inputs.size(), before.inputs.size());
  for (std::size_t port = 0; port < after.inputs.size(); ++port)
    EXPECT_EQ(after.inputs[port].name, before.inputs[port].name);
  EXPECT_EQ(after.targets, before.targets);

  const Batch rows = gathered(reader, 0, kRows);
  const Batch batch = applied(*transform, copy_of(rows), {.training = true, .tensors_only = true});

  testing::expect_same(batch.targets, rows.targets, "target");
}

CLAIM(Transform, TensorOperationsAgreeWithTheLoop) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);
    if (!transform->works_on_device())
      GTEST_SKIP() << "works on the host";
    const auto by = [&](bool tensors_only, bool training, std::uint64_t seed) {
      return applied(*transform, gathered(reader, 0, kRows),
                     {.training = training, .seed = seed, .tensors_only = tensors_only});
    };

    expect_same(by(true, false, 1), by(false, false, 1));
    if (!GetParam().draws_on_device) {
      expect_same(by(true, true, 1), by(false, true, 1));
      continue;
    }
    expect_same(by(true, true, 1), by(true, true, 1));
    const Batch one = by(true, true, 1);
    const Batch other = by(true, true, 2);
    bool differs = false;
    for (std::size_t port = 0; port < other.inputs.size(); ++port)
      differs = differs || !same(other.inputs[port], one.inputs[port]);
    EXPECT_TRUE(differs) << "the seed of a batch decides what a device draws";
  }
}

CLAIM(Transform, BytesStayBytesAndBecomeTheSameNumbers) {
  if (!GetParam().images)
    GTEST_SKIP() << "takes numbers";
  MatrixRows::Matrices of_levels = table().matrices();
  at::Tensor& pictures = of_levels.inputs.back();
  pictures = at::randint(0, 256, pictures.sizes(), at::kFloat);
  const MatrixRows reader(std::move(of_levels));
  const auto transform = fitted(reader);
  if (!transform->takes_bytes())
    GTEST_SKIP() << "takes numbers";
  DataSpec spec = reader.spec();
  spec.inputs.back().dtype = at::kByte;
  EXPECT_EQ(transform->output_spec(spec).inputs.back().dtype, at::kByte);
  for (const bool training : {false, true}) {
    for (const bool tensors_only : {false, true}) {
      if (tensors_only && !transform->works_on_device())
        continue;
      const ApplyContext context{.training = training, .seed = 5, .tensors_only = tensors_only};

      const Batch bytes = applied(*transform, with_bytes(reader, true), context);
      const Batch numbers = applied(*transform, with_bytes(reader, false), context);

      EXPECT_EQ(bytes.inputs.back().scalar_type(), at::kByte);
      const at::Tensor as_numbers = bytes.inputs.back().to(at::kFloat);
      const double within = GetParam().bytes_within;
      EXPECT_TRUE(within > 0 ? as_numbers.allclose(numbers.inputs.back(), 0, within)
                             : same(as_numbers, numbers.inputs.back()));
    }
  }
}

CLAIM(Transform, BatchesAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows reader = table(dtype);
    const auto transform = fitted(reader);
    if (!transform->works_on_device())
      GTEST_SKIP() << "works on the host";
    if (GetParam().draws_on_device && !device->draws_as_a_cpu())
      GTEST_SKIP() << "the device draws numbers of its own";

    expect_results(prepared_on(device->device(), *transform, reader),
                   prepared_on(c10::kCPU, *transform, reader), device->closeness(dtype));
  }
}

CLAIM(Transform, RefusesAnEmptyState) {
  EXPECT_THROW(GetParam().make()->load_state(StateDict()), StorageError);
}

}  // namespace treadle::testing
