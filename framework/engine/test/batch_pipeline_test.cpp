#include <treadle/engine/batch_pipeline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <numeric>
#include <set>

#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {
namespace {

using ::testing::HasSubstr;

/// `count` rows; the only feature of row i is i.
class NumberedRows : public RowReader {
 public:
  explicit NumberedRows(std::int64_t count) : values_(at::arange(count, at::kFloat).unsqueeze(1)) {
    spec_.inputs = {{"features", {1}, {{"x", {}, false}}}};
    spec_.targets = {number_target("x")};
  }

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return values_.size(0); }
  void do_gather(std::span<const std::int64_t>, Batch& out) const override {
    out.inputs.resize(1);
    gather_rows(values_, out.rows, out.inputs[0]);
    out.targets.resize(1);
    gather_rows(values_, out.rows, out.targets[0]);
  }
  at::Tensor do_targets(std::size_t) const override { return values_; }

  at::Tensor values_;
  DataSpec spec_;
};

/// Adds noise drawn from the batch's own seed: what an augmentation does.
class Jitter : public Transform {
  void do_fit(const RowReader&, const RowList&) override {}
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    if (!context.training)
      return;
    batch.inputs[0].add_(at::rand({batch.size(), 1}, make_generator(context.seed)));
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
};

/// Fails on one value.
class Picky : public Transform {
  void do_fit(const RowReader&, const RowList&) override {}
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext&) const override {
    if (batch.rows.eq(17).any().item<bool>())
      throw std::runtime_error("row 17 is not to my taste");
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
};

std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

PipelineOptions shuffled(std::int64_t batch_size) {
  PipelineOptions options;
  options.batch_size = batch_size;
  options.shuffle = true;
  options.training = true;
  return options;
}

/// Everything the pipeline gives in some epochs, as one tensor.
at::Tensor read(BatchPipeline& pipeline, std::int64_t epochs) {
  std::vector<at::Tensor> parts;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto stream = pipeline.epoch(epoch);
    Batch batch;
    while (stream->next(batch))
      parts.push_back(batch.inputs[0].clone());
  }
  return at::cat(parts);
}

TEST(BatchPipeline, GivesEveryRowOnceAnEpoch) {
  const NumberedRows rows(103);
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(103), {}, shuffled(10), RandomStreams(1));
    EXPECT_EQ(pipeline.batches_per_epoch(), 11);
    const at::Tensor first = read(pipeline, 1).flatten();
    EXPECT_TRUE(at::equal(std::get<0>(first.sort()), at::arange(103, at::kFloat)));
    EXPECT_FALSE(at::equal(first, at::arange(103, at::kFloat)));
  });
}

TEST(BatchPipeline, GivesTheSameBitsForAnyNumberOfWorkers) {
  const NumberedRows rows(1000);
  const Jitter jitter;
  at::Tensor expected;
  for (const int workers : {1, 2, 3, 8}) {
    ThreadBudget budget(workers);
    budget.run([&] {
      BatchPipeline pipeline(rows, all_rows(1000), {rows.spec(), {&jitter}}, shuffled(32),
                             RandomStreams(5));
      const at::Tensor got = read(pipeline, 3);
      if (!expected.defined())
        expected = got;
      EXPECT_TRUE(at::equal(got, expected)) << workers << " workers";
    });
  }
}

TEST(BatchPipeline, StartsInTheMiddleOfAnEpochLikeOneThatWalkedThere) {
  const NumberedRows rows(100);
  const Jitter jitter;
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline walked(rows, all_rows(100), {rows.spec(), {&jitter}}, shuffled(10),
                         RandomStreams(5));
    BatchPipeline jumped(rows, all_rows(100), {rows.spec(), {&jitter}}, shuffled(10),
                         RandomStreams(5));
    const at::Tensor everything = read(walked, 2);

    const auto stream = jumped.epoch(1, 4);
    Batch batch;
    ASSERT_TRUE(stream->next(batch));

    EXPECT_TRUE(at::equal(batch.inputs[0], everything.narrow(0, 140, 10)));
  });
}

TEST(BatchPipeline, ShufflesEachEpochAnewAndOtherSeedsOtherwise) {
  const NumberedRows rows(50);
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline a(rows, all_rows(50), {}, shuffled(50), RandomStreams(1));
    BatchPipeline b(rows, all_rows(50), {}, shuffled(50), RandomStreams(2));
    const at::Tensor two = read(a, 2);
    EXPECT_FALSE(at::equal(two.narrow(0, 0, 50), two.narrow(0, 50, 50)));
    EXPECT_FALSE(at::equal(two.narrow(0, 0, 50), read(b, 1)));
  });
}

TEST(BatchPipeline, DropsAShortLastBatchOnlyWhenAsked) {
  const NumberedRows rows(25);
  PipelineOptions options = shuffled(10);
  options.drop_last = true;
  ThreadBudget budget(1);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(25), {}, options, RandomStreams(1));
    EXPECT_EQ(read(pipeline, 1).size(0), 20);
  });
}

TEST(BatchPipeline, DropsALastBatchOfTooFewRowsUnlessItIsTheOnlyOne) {
  const NumberedRows rows(25);
  ThreadBudget budget(1);
  budget.run([&] {
    const auto rows_read = [&](std::int64_t batch_size, std::int64_t fewest_rows) {
      PipelineOptions options = shuffled(batch_size);
      options.fewest_rows = fewest_rows;
      BatchPipeline pipeline(rows, all_rows(25), {}, options, RandomStreams(1));
      EXPECT_EQ(pipeline.batches_per_pass(), pipeline.batches_per_epoch());
      return read(pipeline, 1).size(0);
    };
    EXPECT_EQ(rows_read(10, 5), 25);
    EXPECT_EQ(rows_read(10, 6), 20);
    EXPECT_EQ(rows_read(5, 6), 25) << "all batches are full";
    EXPECT_EQ(rows_read(30, 26), 25) << "there is no other";
  });
}

TEST(BatchPipeline, NeverHoldsMoreBatchesThanItsMemoryAllows) {
  const NumberedRows rows(4096);
  PipelineOptions options = shuffled(64);
  options.buffer_bytes = 4 * 64 * (4 + 4 + 8);  // four batches: feature, target, row index
  ThreadBudget budget(3);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(4096), {}, options, RandomStreams(1));
    read(pipeline, 3);
    EXPECT_LE(pipeline.most_in_flight(), 4);
  });
}

TEST(BatchPipeline, BatchesStayValidWhileSomebodyHoldsThem) {
  const NumberedRows rows(1000);
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(1000), {}, shuffled(10), RandomStreams(1));
    std::vector<Batch> held;
    std::vector<at::Tensor> copies;
    const auto stream = pipeline.epoch(0);
    Batch batch;
    while (stream->next(batch)) {
      held.push_back(batch);
      copies.push_back(batch.inputs[0].clone());
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
      ASSERT_TRUE(at::equal(held[i].inputs[0], copies[i])) << i;
    }
  });
}

TEST(BatchPipeline, AnErrorArrivesInItsTurnAndNamesItsBatch) {
  const NumberedRows rows(100);
  const Picky picky;
  PipelineOptions options;
  options.batch_size = 5;
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(100), {rows.spec(), {&picky}}, options, RandomStreams(1));
    const auto stream = pipeline.epoch(0);
    Batch batch;
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(stream->next(batch));
    try {
      stream->next(batch);
      FAIL() << "the fourth batch holds row 17";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "row 17 is not to my taste (while preparing batch 4 of epoch 1)");
    }
  });
}

TEST(BatchPipeline, RestoresItsPlaceFromState) {
  const NumberedRows rows(100);
  ThreadBudget budget(2);
  budget.run([&] {
    BatchPipeline first(rows, all_rows(100), {}, shuffled(10), RandomStreams(9));
    const auto stream = first.epoch(2);
    Batch batch;
    for (int i = 0; i < 3; ++i)
      stream->next(batch);
    const StateDict place = stream->state();
    Batch expected;
    stream->next(expected);

    BatchPipeline second(rows, all_rows(100), {}, shuffled(10), RandomStreams(9));
    const auto restored = second.epoch(0);
    restored->load_state(place);
    Batch got;
    ASSERT_TRUE(restored->next(got));

    EXPECT_TRUE(at::equal(got.rows, expected.rows));
  });
}

}  // namespace
}  // namespace treadle::engine
