#include <treadle/engine/batch_pipeline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <mutex>
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

/// The inputs of some epochs in steps, those of a process one behind the other.
std::vector<at::Tensor> read_steps(DividedSource& source, std::int64_t epochs, ShardRange own,
                                   std::int64_t first_batch = 0) {
  std::vector<at::Tensor> steps;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto stream = source.steps(epoch, epoch == 0 ? first_batch : 0, own);
    StepRows rows;
    while (stream->next(rows)) {
      EXPECT_EQ(rows.shards.size(), own.size());
      std::vector<at::Tensor> inputs{at::empty({0, 1})};
      for (const Batch& shard : rows.shards) {
        if (shard.size() > 0)
          inputs.push_back(shard.inputs[0]);
      }
      steps.push_back(at::cat(inputs));
    }
  }
  return steps;
}

// The last batch has 3 rows: one of its shards has none.
TEST(BatchPipeline, PreparesTheShardsOfAProcessAsOneProcessPreparesAll) {
  const NumberedRows rows(103);
  const Jitter jitter;
  PipelineOptions options = shuffled(10);
  options.shards = 4;
  ThreadBudget budget(2);
  budget.run([&] {
    const auto open = [&] {
      return BatchPipeline(rows, all_rows(103), {rows.spec(), {&jitter}}, options,
                           RandomStreams(5));
    };
    BatchPipeline all = open();
    const std::vector<at::Tensor> steps = read_steps(all, 2, {0, 4});
    ASSERT_EQ(steps.size(), 22);
    EXPECT_TRUE(at::equal(read(all, 2), at::cat(steps))) << "in whole batches";
    for (const std::size_t processes : {2, 3, 4}) {
      std::vector<std::vector<at::Tensor>> parts(steps.size());
      for (std::size_t rank = 0; rank < processes; ++rank) {
        BatchPipeline one = open();
        const std::vector<at::Tensor> own =
            read_steps(one, 2, {4 * rank / processes, 4 * (rank + 1) / processes});
        ASSERT_EQ(own.size(), steps.size());
        for (std::size_t i = 0; i < own.size(); ++i)
          parts[i].push_back(own[i]);
      }
      for (std::size_t i = 0; i < steps.size(); ++i)
        EXPECT_TRUE(at::equal(at::cat(parts[i]), steps[i]))
            << processes << " processes, step " << i;
    }
    BatchPipeline resumed = open();
    EXPECT_TRUE(at::equal(read_steps(resumed, 1, {1, 3}, 4).front(), [&] {
      BatchPipeline walked = open();
      return read_steps(walked, 1, {1, 3}).at(4);
    }()));
  });
}

/// Remembers which rows were read.
class WatchedRows final : public RowReader {
 public:
  explicit WatchedRows(const NumberedRows& rows) : rows_(rows) {}
  std::multiset<std::int64_t> seen() const { return seen_; }

 private:
  const DataSpec& do_spec() const override { return rows_.spec(); }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    {
      const std::lock_guard lock(mutex_);
      seen_.insert(rows.begin(), rows.end());
    }
    rows_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return rows_.targets(target); }

  const NumberedRows& rows_;
  mutable std::mutex mutex_;
  mutable std::multiset<std::int64_t> seen_;
};

TEST(BatchPipeline, ReadsTheRowsOfItsOwnShardsAlone) {
  const NumberedRows numbered(80);
  const WatchedRows rows(numbered);
  PipelineOptions options{.batch_size = 8, .shards = 4};
  ThreadBudget budget(1);
  budget.run([&] {
    BatchPipeline pipeline(rows, all_rows(80), {}, options, RandomStreams(5));
    read_steps(pipeline, 1, {2, 3});
  });
  for (std::int64_t row = 0; row < 80; ++row)
    EXPECT_EQ(rows.seen().count(row) > 0, row % 8 / 2 == 2) << row;
}

TEST(BatchPipeline, DividesThePassesOfAnEvaluationByBatches) {
  const NumberedRows rows(47);
  ThreadBudget budget(2);
  budget.run([&] {
    const auto open = [&] {
      return BatchPipeline(rows, all_rows(47), {}, {.batch_size = 10}, RandomStreams(5));
    };
    for (const std::int64_t processes : {1, 2, 3, 7}) {
      std::vector<at::Tensor> batches(5);
      for (std::int64_t rank = 0; rank < processes; ++rank) {
        BatchPipeline pipeline = open();
        // Twice: the second pass may go on with what is being prepared.
        for (int pass = 0; pass < 2; ++pass) {
          const auto stream = pipeline.every(0, rank, processes);
          Batch batch;
          std::size_t place = static_cast<std::size_t>(rank);
          for (; stream->next(batch); place += static_cast<std::size_t>(processes))
            batches.at(place) = batch.inputs[0];
          EXPECT_GE(place, batches.size());
        }
      }
      EXPECT_TRUE(at::equal(at::cat(batches).flatten(), at::arange(47, at::kFloat)))
          << processes << " processes";
    }
  });
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
