#include <treadle/engine/batch_preparation.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/transformed_rows.h>
#include <treadle/testing/support/batches.h>

namespace treadle::engine {
namespace {

using testing::row_numbers;

/// Adds one to each pixel, and remembers what it was given. Batches are prepared beside each other,
/// so what is remembered is atomic.
class Brightens : public Transform {
 public:
  explicit Brightens(bool on_device = false, bool bytes = false)
      : on_device_(on_device), bytes_(bytes) {}

  mutable std::atomic<at::ScalarType> seen = at::kLong;
  mutable std::atomic<bool> as_on_device = false;
  mutable at::ScalarType fitted_on = at::kLong;

 private:
  void do_fit(const RowReader& reader, const RowList& rows) override {
    Batch batch;
    reader.gather(rows.numbers(), batch);
    fitted_on = batch.inputs[0].scalar_type();
    EXPECT_EQ(reader.spec().inputs[0].dtype, fitted_on);
  }
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    seen = batch.inputs[0].scalar_type();
    as_on_device = context.tensors_only;
    batch.inputs[0].add_(1);
  }
  bool do_works_on_device() const override { return on_device_; }
  bool do_takes_bytes() const override { return bytes_; }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}

  bool on_device_;
  bool bytes_;
};

DataSpec images(at::ScalarType dtype) {
  DataSpec spec;
  spec.inputs = {{"image", {3, 8, 8}, {}, Role::kImage, dtype}};
  return spec;
}

DataSpec table() {
  DataSpec spec;
  spec.inputs = {{"features", {2}, {{"a", {}}, {"b", {}}}, Role::kFeatures, at::kFloat}};
  return spec;
}

Batch batch_of(const at::Tensor& input) {
  Batch batch;
  batch.inputs = {input};
  return batch;
}

const PreparationOptions kForDevice{.for_device = true};

TEST(BatchPreparation, DoesNothingByDefault) {
  const BatchPreparation nothing;
  BatchPreparation::Memory memory;
  Batch batch = batch_of(at::full({2, 2}, 3, at::kFloat));
  const at::Tensor input = batch.inputs[0];

  nothing.before_transfer(batch, {}, memory);
  nothing.after_transfer(batch, {});

  EXPECT_TRUE(batch.inputs[0].is_same(input));
  EXPECT_FALSE(nothing.has_device_part());
}

TEST(BatchPreparation, BytesBecomeNumbersInFrontOfTheFirstTransformThatNeedsThem) {
  const Brightens takes_bytes(false, true);
  const Brightens needs_numbers;
  const BatchPreparation preparation(images(at::kByte), {&takes_bytes, &needs_numbers},
                                     {.dtype = at::kDouble});
  BatchPreparation::Memory memory;
  Batch batch = batch_of(at::full({2, 3, 8, 8}, 7, at::kByte));

  preparation.before_transfer(batch, {}, memory);

  EXPECT_EQ(takes_bytes.seen.load(), at::kByte);
  EXPECT_EQ(needs_numbers.seen.load(), at::kDouble);
  EXPECT_TRUE(at::equal(batch.inputs[0], at::full({2, 3, 8, 8}, 9, at::kDouble)));
  EXPECT_EQ(preparation.spec(), images(at::kDouble));
}

TEST(BatchPreparation, WithoutATransformBytesBecomeNumbersAtTheEnd) {
  const BatchPreparation preparation(images(at::kByte), {});
  BatchPreparation::Memory memory;
  Batch batch = batch_of(at::full({2, 3, 8, 8}, 7, at::kByte));

  preparation.before_transfer(batch, {}, memory);

  EXPECT_TRUE(at::equal(batch.inputs[0], at::full({2, 3, 8, 8}, 7, at::kFloat)));
}

/// Of two columns and a target, which no float32 holds.
DataSpec exact_table() {
  DataSpec spec = table();
  spec.inputs[0].dtype = at::kDouble;
  spec.targets = {number_target("y")};
  return spec;
}

Batch exact_batch(at::ScalarType dtype = at::kDouble) {
  Batch batch;
  batch.rows = at::arange(3, at::kLong);
  batch.inputs = {at::arange(6, at::kDouble).view({3, 2}).add(1e9).to(dtype)};
  batch.targets = {at::arange(3, at::kDouble).view({3, 1}).add(1e12).to(dtype)};
  batch.original_targets = batch.targets;
  batch.weights = at::full({3}, 0.1, at::kDouble);
  return batch;
}

TEST(BatchPreparation, NumbersAreRoundedBehindTheLastTransform) {
  const Brightens transform;
  const BatchPreparation preparation(exact_table(), {&transform});
  BatchPreparation::Memory memory;
  Batch batch = exact_batch();

  preparation.before_transfer(batch, {}, memory);

  EXPECT_EQ(transform.seen.load(), at::kDouble);
  EXPECT_EQ(preparation.spec().inputs[0].dtype, at::kFloat);
  EXPECT_TRUE(at::equal(batch.inputs[0], exact_batch().inputs[0].add(1).to(at::kFloat)));
  EXPECT_TRUE(at::equal(batch.targets[0], exact_batch().targets[0].to(at::kFloat)));
  EXPECT_TRUE(at::equal(batch.original_targets[0], exact_batch().targets[0]))
      << "what metrics compare with";
  EXPECT_EQ(batch.weights.scalar_type(), at::kFloat);
}

TEST(BatchPreparation, TransformsAreGivenFloat64OfTablesThatLieAsFloat32) {
  const Brightens transform;
  DataSpec spec = exact_table();
  spec.inputs[0].dtype = at::kFloat;
  const BatchPreparation preparation(spec, {&transform});
  const BatchPreparation of_images(images(at::kFloat), {&transform});
  BatchPreparation::Memory memory;
  Batch batch = exact_batch(at::kFloat);
  Batch pictures = batch_of(at::full({2, 3, 8, 8}, 7, at::kFloat));

  preparation.before_transfer(batch, {}, memory);

  EXPECT_EQ(transform.seen.load(), at::kDouble);
  EXPECT_EQ(batch.inputs[0].scalar_type(), at::kFloat);
  EXPECT_EQ(batch.targets[0].scalar_type(), at::kFloat);
  BatchPreparation::Memory others;
  of_images.before_transfer(pictures, {}, others);
  EXPECT_EQ(transform.seen.load(), at::kFloat) << "an image has the type of its file";
}

TEST(BatchPreparation, GathersAndRoundsIntoTheMemoryOfLastTime) {
  const Brightens transform;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    DataSpec spec = exact_table();
    spec.inputs[0].dtype = dtype;
    const BatchPreparation preparation(spec, {&transform});
    BatchPreparation::Memory memory;
    Batch batch = exact_batch(dtype);
    const std::vector<const void*> gathered{batch.inputs[0].data_ptr(), batch.targets[0].data_ptr(),
                                            batch.weights.data_ptr()};
    std::vector<const void*> prepared;
    for (int round = 0; round < 3; ++round) {
      preparation.put_back(batch, memory);
      EXPECT_EQ((std::vector<const void*>{batch.inputs[0].data_ptr(), batch.targets[0].data_ptr(),
                                          batch.weights.data_ptr()}),
                gathered);
      batch.original_targets = batch.targets;
      preparation.before_transfer(batch, {}, memory);
      const std::vector<const void*> now{batch.inputs[0].data_ptr(), batch.targets[0].data_ptr(),
                                         batch.weights.data_ptr()};
      if (round > 0) {
        EXPECT_EQ(now, prepared) << "nothing is allocated";
      }
      prepared = now;
    }
  }
}

TEST(BatchPreparation, RefusesNumbersThatFloat32CannotHold) {
  const BatchPreparation preparation(exact_table(), {});
  BatchPreparation::Memory memory;
  Batch batch = exact_batch();
  batch.inputs[0][1][1] = -1e39;

  try {
    preparation.before_transfer(batch, {}, memory);
    FAIL() << "was rounded to infinity";
  } catch (const NumberTooLarge& error) {
    EXPECT_EQ(error.row(), 1);
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("column \"b\""),
                                               ::testing::HasSubstr("-1e+39"),
                                               ::testing::HasSubstr("\"float64\"")));
  }
  const BatchPreparation exact(exact_table(), {}, {.dtype = at::kDouble});
  EXPECT_NO_THROW(exact.before_transfer(batch, {}, memory));
}

TEST(BatchPreparation, ImagesOfBytesAreSentAsBytes) {
  const Brightens flips(true, true);
  const Brightens scales(true);
  const BatchPreparation preparation(images(at::kByte), {&flips, &scales}, kForDevice);
  BatchPreparation::Memory memory;
  Batch batch = batch_of(at::full({2, 3, 8, 8}, 7, at::kByte));

  preparation.before_transfer(batch, {}, memory);
  EXPECT_EQ(batch.inputs[0].scalar_type(), at::kByte);
  EXPECT_EQ(preparation.growth_on_device(batch), 2 * 3 * 8 * 8 * 3);

  preparation.after_transfer(batch, {});
  EXPECT_TRUE(at::equal(batch.inputs[0], at::full({2, 3, 8, 8}, 9, at::kFloat)));
  EXPECT_TRUE(flips.as_on_device);
  EXPECT_TRUE(scales.as_on_device);
}

TEST(BatchPreparation, ATransformOfTheHostKeepsThoseBeforeItOnTheHost) {
  const Brightens first(true);
  const Brightens of_host;
  const Brightens last(true);
  const BatchPreparation preparation(images(at::kFloat), {&first, &of_host, &last}, kForDevice);
  BatchPreparation::Memory memory;
  Batch batch = batch_of(at::full({2, 3, 8, 8}, 1, at::kFloat));

  preparation.before_transfer(batch, {}, memory);
  EXPECT_TRUE(at::equal(batch.inputs[0], at::full({2, 3, 8, 8}, 3, at::kFloat)));
  EXPECT_FALSE(first.as_on_device);
  EXPECT_EQ(last.seen.load(), at::kLong) << "not applied yet";

  preparation.after_transfer(batch, {});
  EXPECT_TRUE(last.as_on_device);
}

TEST(BatchPreparation, TablesArePreparedOnTheHost) {
  const Brightens scale(true);

  EXPECT_FALSE(BatchPreparation(table(), {&scale}, kForDevice).has_device_part());
  EXPECT_TRUE(BatchPreparation(images(at::kFloat), {&scale}, kForDevice).has_device_part());
  EXPECT_FALSE(BatchPreparation(images(at::kFloat), {&scale}).has_device_part()) << "on a CPU";
}

TEST(BatchPreparation, UndoesWhatWasDoneToTargets) {
  class Doubles final : public Brightens {
    at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const override {
      return target == "price" ? predictions.div(2) : predictions;
    }
  };
  const Doubles one;
  const BatchPreparation preparation(images(at::kByte), {&one, &one});

  EXPECT_EQ(preparation.inverted(at::full({1}, 8, at::kFloat), "price", {}).item<float>(), 2);
  EXPECT_EQ(preparation.inverted(at::full({1}, 8, at::kFloat), "other", {}).item<float>(), 8);
}

TEST(BatchPreparation, TransformsAreFittedOnNumbers) {
  MatrixRows::Matrices matrices;
  matrices.spec = images(at::kByte);
  matrices.inputs = {at::full({6, 3, 8, 8}, 200, at::kByte)};
  const MatrixRows rows(std::move(matrices));
  const Brightens first(true, true);
  Brightens second(true, true);

  second.fit(TransformedRows(rows, {&first}, at::kDouble), row_numbers(0, 6));

  EXPECT_EQ(second.fitted_on, at::kDouble);
}

// A slot of the pipeline has the bytes and the numbers of the last batch, and writes to both.
TEST(BatchPreparation, APipelineOfBytesGivesTheNumbersOfAPipelineOfNumbers) {
  MatrixRows::Matrices matrices;
  matrices.spec = images(at::kByte);
  matrices.inputs = {at::randint(0, 256, {70, 3, 8, 8}, at::kByte)};
  MatrixRows::Matrices as_numbers = matrices;
  as_numbers.spec = images(at::kFloat);
  as_numbers.inputs = {matrices.inputs[0].to(at::kFloat)};
  const MatrixRows bytes(std::move(matrices));
  const MatrixRows numbers(std::move(as_numbers));
  const Brightens brightens(true);
  const auto read = [&](const MatrixRows& rows, bool for_device, bool holds) {
    std::vector<at::Tensor> read;
    std::vector<Batch> held;
    BatchPipeline pipeline(rows, row_numbers(0, 70),
                           {rows.spec(), {&brightens}, {.for_device = for_device}},
                           {.batch_size = 16, .shuffle = true, .training = true}, RandomStreams(4));
    for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
      const auto stream = pipeline.epoch(epoch);
      for (Batch batch; stream->next(batch);) {
        read.push_back(batch.inputs[0].clone());
        if (holds)
          held.push_back(batch);  // the slot must not write to it again
      }
    }
    for (std::size_t i = 0; i < held.size(); ++i)
      EXPECT_TRUE(at::equal(held[i].inputs[0], read[i])) << i;
    return at::cat(read);
  };
  ThreadBudget budget(2);
  budget.run([&] {
    const at::Tensor expected = read(numbers, false, false);
    EXPECT_TRUE(at::equal(read(bytes, false, false), expected));
    EXPECT_TRUE(at::equal(read(bytes, false, true), expected));
    EXPECT_TRUE(at::equal(read(bytes, true, false), expected));
  });
}

}  // namespace
}  // namespace treadle::engine
