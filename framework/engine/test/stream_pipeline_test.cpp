// Streams: data that is only read in order, in windows.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>

#include <treadle/base/error.h>
#include <treadle/core/data/chunked_stream.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/stream_rows.h>
#include <treadle/engine/thread_budget.h>

namespace treadle::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::int64_t>;

/// Rows 0, 1, … in chunks of 7; the only feature of row i is i.
class NumberedStream final : public DataProvider {
 public:
  /// `told`: what it tells of its length.
  explicit NumberedStream(std::int64_t rows, std::optional<std::int64_t> told = std::nullopt)
      : rows_(rows), told_(told) {
    spec_.inputs = {{"features", {1}, {{"x", {}, false}}}};
    spec_.targets = {number_target("x")};
    open({});
  }

  std::int64_t fails_at = -1;                   ///< a chunk
  mutable std::atomic<std::int64_t> loads = 0;  ///< of chunks, by all of its streams

 private:
  class Chunks final : public ChunkedStream {
   public:
    Chunks(const NumberedStream& data, std::int64_t batch_size)
        : ChunkedStream(batch_size), data_(data) {}

   private:
    Chunk do_load(std::int64_t number, Batch& rows) override {
      constexpr std::int64_t kChunk = 7;
      ++data_.loads;
      if (number == data_.fails_at)
        throw DataError("chunk " + std::to_string(number) + " is torn");
      const std::int64_t begin = number * kChunk;
      if (begin >= data_.rows_)
        return Chunk::kEnd;
      const at::Tensor values =
          at::arange(begin, std::min(begin + kChunk, data_.rows_), at::kFloat).unsqueeze(1);
      rows.inputs = {values};
      rows.targets = {values};
      return Chunk::kRows;
    }
    const NumberedStream& data_;
  };

  void do_open(const OpenRequest&) override {}
  const DataSpec& do_spec() const override { return spec_; }
  std::string do_content_hash() const override { return std::string(32, '0'); }
  std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const override {
    return std::make_unique<Chunks>(*this, batch_size);
  }
  std::optional<std::int64_t> do_stream_rows() const override { return told_; }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}

  std::int64_t rows_;
  std::optional<std::int64_t> told_;
  DataSpec spec_;
};

PipelineOptions by(std::int64_t batch_size, std::optional<std::int64_t> per_epoch = {}) {
  PipelineOptions options;
  options.batch_size = batch_size;
  options.shuffle = true;
  options.training = true;
  options.batches_per_epoch = per_epoch;
  return options;
}

Rows rows_in(const Batch& batch) {
  const auto* rows = batch.rows.data_ptr<std::int64_t>();
  EXPECT_TRUE(batch.inputs[0].flatten().eq(batch.rows).all().item<bool>());
  return {rows, rows + batch.size()};
}

using Epoch = std::vector<Rows>;

Epoch rest_of(BatchStream& stream) {
  Epoch batches;
  for (Batch batch; stream.next(batch); batch = Batch())
    batches.push_back(rows_in(batch));
  return batches;
}

std::vector<Epoch> epochs_of(BatchPipeline& pipeline, std::int64_t count) {
  std::vector<Epoch> epochs;
  for (std::int64_t epoch = 0; epoch < count; ++epoch)
    epochs.push_back(rest_of(*pipeline.epoch(epoch)));
  return epochs;
}

Rows all_of(const Epoch& epoch) {
  Rows all;
  for (const Rows& batch : epoch)
    all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

Rows numbers(std::int64_t begin, std::int64_t end) {
  Rows all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

TEST(StreamPipeline, GivesEachRowOnceAPassWhateverItKnowsOfItsLength) {
  for (const std::optional<std::int64_t> told : {std::optional<std::int64_t>(), {103}}) {
    const NumberedStream data(103, told);
    ThreadBudget(2).run([&] {
      BatchPipeline pipeline({&data, 3, 20}, {}, by(8), RandomStreams(1));
      EXPECT_EQ(pipeline.batches_per_epoch(),
                told ? std::optional<std::int64_t>(15) : std::nullopt);
      for (const Epoch& epoch : epochs_of(pipeline, 3)) {
        Rows rows = all_of(epoch);
        EXPECT_EQ(epoch.size(), 15U);  // 3 of each window of 20
        std::sort(rows.begin(), rows.end());
        EXPECT_EQ(rows, numbers(3, 103));
      }
    });
  }
}

TEST(StreamPipeline, ShufflesWithinAWindowAndEachPassAnew) {
  const NumberedStream data(100);
  ThreadBudget(1).run([&] {
    BatchPipeline pipeline({&data, 0, 20}, {}, by(20), RandomStreams(1));
    const std::vector<Epoch> epochs = epochs_of(pipeline, 2);
    for (std::size_t window = 0; window < 5; ++window) {
      Rows sorted = epochs[0][window];
      EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
      std::sort(sorted.begin(), sorted.end());
      const auto first = static_cast<std::int64_t>(window) * 20;
      EXPECT_EQ(sorted, numbers(first, first + 20));
      EXPECT_NE(epochs[0][window], epochs[1][window]);
    }
  });
}

TEST(StreamPipeline, GivesTheSameBatchesForAnyNumberOfWorkers) {
  const NumberedStream data(1000);
  std::vector<std::vector<Epoch>> found;
  for (const int workers : {1, 2, 4}) {
    ThreadBudget(workers).run([&] {
      BatchPipeline pipeline({&data, 10, 64}, {}, by(16), RandomStreams(5));
      found.push_back(epochs_of(pipeline, 2));
    });
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

TEST(StreamPipeline, EpochsOfSoManyStepsGoOnFromOneAnother) {
  const NumberedStream data(45);
  ThreadBudget(2).run([&] {
    BatchPipeline by_pass({&data, 5, 20}, {}, by(10), RandomStreams(1));
    const std::vector<Epoch> passes = epochs_of(by_pass, 3);
    ASSERT_EQ(passes[0].size(), 4U);
    BatchPipeline by_steps({&data, 5, 20}, {}, by(10, 3), RandomStreams(1));
    const std::vector<Epoch> epochs = epochs_of(by_steps, 4);

    Epoch one_after_the_other;
    for (const Epoch& pass : passes)
      one_after_the_other.insert(one_after_the_other.end(), pass.begin(), pass.end());
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(epochs[i / 3][i % 3], one_after_the_other[i]);
  });
}

/// Stops after every batch, in turn, and goes on in a new pipeline that knows nothing but the
/// state.
void expect_to_go_on_anywhere(const NumberedStream& data, const PipelineOptions& options,
                              std::int64_t epochs) {
  ThreadBudget(2).run([&] {
    const StreamInput input{&data, 4, 24};
    BatchPipeline whole(input, {}, options, RandomStreams(3));
    const std::vector<Epoch> expected = epochs_of(whole, epochs);
    BatchPipeline walked(input, {}, options, RandomStreams(3));
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      const Epoch& batches = expected[static_cast<std::size_t>(epoch)];
      const auto stream = walked.epoch(epoch);
      for (std::size_t read = 0; read <= batches.size(); ++read) {
        const auto batch = static_cast<std::int64_t>(read);
        const StateDict state = walked.state(epoch, batch);
        BatchPipeline resumed(input, {}, options, RandomStreams(3));
        resumed.load_state(state);
        EXPECT_EQ(rest_of(*resumed.epoch(epoch, batch)),
                  Epoch(batches.begin() + batch, batches.end()))
            << "epoch " << epoch << ", batch " << batch;
        // The whole epoch can be read once more: for statistics.
        EXPECT_EQ(rest_of(*resumed.epoch(epoch)), batches);
        if (epoch + 1 < epochs && options.batches_per_epoch) {
          EXPECT_EQ(rest_of(*resumed.epoch(epoch + 1)),
                    expected[static_cast<std::size_t>(epoch) + 1]);
        }
        Batch next;
        EXPECT_EQ(stream->next(next), read < batches.size());
      }
    }
  });
}

TEST(StreamPipeline, GoesOnAfterAnyBatch) {
  expect_to_go_on_anywhere(NumberedStream(100), by(10), 2);
  expect_to_go_on_anywhere(NumberedStream(100, 100), by(10), 2);
  expect_to_go_on_anywhere(NumberedStream(60), by(10, 4), 4);
  expect_to_go_on_anywhere(NumberedStream(60, 60), by(10, 4), 4);
  expect_to_go_on_anywhere(NumberedStream(1000000, DataProvider::kEndless), by(10, 4), 3);
}

// Statistics of batch norm are computed over an epoch that is read again; a stop may come within.
TEST(StreamPipeline, KeepsItsPlaceWhereAnEpochIsReadAgain) {
  const NumberedStream data(60);
  ThreadBudget(2).run([&] {
    const StreamInput input{&data, 0, 60};
    BatchPipeline whole(input, {}, by(10, 4), RandomStreams(3));
    const std::vector<Epoch> expected = epochs_of(whole, 2);
    BatchPipeline stopped(input, {}, by(10, 4), RandomStreams(3));
    rest_of(*stopped.epoch(0));
    Batch batch;
    ASSERT_TRUE(stopped.epoch(0)->next(batch));  // and no further

    const StateDict state = stopped.state(0, 4);

    BatchPipeline resumed(input, {}, by(10, 4), RandomStreams(3));
    resumed.load_state(state);
    EXPECT_EQ(rest_of(*resumed.epoch(1)), expected[1]);
  });
}

TEST(StreamPipeline, RefusesAStreamThatFillsNoBatch) {
  const NumberedStream data(1000, 1000);
  PipelineOptions options = by(64, 10);
  options.drop_last = true;
  ThreadBudget(1).run([&] {
    try {
      BatchPipeline(StreamInput{&data, 950, 100}, {}, options, RandomStreams(3));
      FAIL();
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("50 rows"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("drop_last"));
    }
  });
}

TEST(StreamPipeline, GoesOnWithoutReadingWhatWasBefore) {
  const NumberedStream data(1000000, DataProvider::kEndless);
  ThreadBudget(1).run([&] {
    BatchPipeline pipeline({&data, 0, 70}, {}, by(10, 100), RandomStreams(3));
    Batch batch;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch)
      rest_of(*pipeline.epoch(epoch));
    const StateDict state = pipeline.state(3, 0);
    data.loads = 0;
    BatchPipeline resumed({&data, 0, 70}, {}, by(10, 100), RandomStreams(3));
    resumed.load_state(state);
    ASSERT_TRUE(resumed.epoch(3)->next(batch));
    EXPECT_LT(data.loads.load(), 200);  // of the 429 that were read before
  });
}

TEST(StreamPipeline, DropLastLeavesOutWhatIsLeftOfTheLastWindow) {
  const NumberedStream data(47);
  PipelineOptions options = by(10);
  options.drop_last = true;
  ThreadBudget(1).run([&] {
    BatchPipeline pipeline({&data, 0, 20}, {}, options, RandomStreams(1));
    EXPECT_EQ(rest_of(*pipeline.epoch(0)).size(), 4U);
    EXPECT_EQ(rest_of(*pipeline.epoch(1)).size(), 4U);
  });
}

// Of windows of 20 rows the last one has what is left: here less than a batch.
TEST(StreamPipeline, DropsALastBatchOfTooFewRowsWhetherTheyAreCountedOrNot) {
  for (const bool is_counted : {true, false}) {
    const auto batches = [&](std::int64_t rows, std::int64_t fewest_rows) {
      const NumberedStream data(rows, is_counted ? std::optional(rows) : std::nullopt);
      PipelineOptions options = by(10);
      options.fewest_rows = fewest_rows;
      BatchPipeline pipeline({&data, 0, 20}, {}, options, RandomStreams(1));
      const std::size_t first = rest_of(*pipeline.epoch(0)).size();
      EXPECT_EQ(rest_of(*pipeline.epoch(1)).size(), first);
      return first;
    };
    ThreadBudget(1).run([&] {
      EXPECT_EQ(batches(41, 2), 4U) << is_counted;
      EXPECT_EQ(batches(42, 2), 5U) << is_counted;
      EXPECT_EQ(batches(1, 2), 1U) << "there is no other";
    });
  }
}

TEST(StreamPipeline, AnErrorOfTheStreamArrivesInItsTurn) {
  NumberedStream data(100);
  data.fails_at = 4;
  ThreadBudget(2).run([&] {
    BatchPipeline pipeline({&data, 0, 14}, {}, by(7), RandomStreams(1));
    const auto stream = pipeline.epoch(0);
    Batch batch;
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(stream->next(batch));
    try {
      while (stream->next(batch)) {
      }
      FAIL() << "the fifth chunk fails";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("chunk 4 is torn"));
    }
  });
}

TEST(StreamPipeline, AStreamWithoutRowsToTrainOnIsAnError) {
  const NumberedStream data(5);
  ThreadBudget(1).run([&] {
    BatchPipeline pipeline({&data, 5, 14}, {}, by(7, 3), RandomStreams(1));
    EXPECT_THROW(
        {
          Batch batch;
          pipeline.epoch(0)->next(batch);
        },
        DataError);
  });
}

TEST(StreamRows, TakesAndSkipsAnyNumberAndRestoresItsPlace) {
  const NumberedStream data(30);
  StreamRows rows(data, 4);
  rows.skip(5);
  EXPECT_THAT(rows_in(rows.take(3)), ElementsAre(5, 6, 7));
  const StateDict at_boundary = rows.state();
  EXPECT_THAT(rows_in(rows.take(1)), ElementsAre(8));
  const StateDict within = rows.state();
  const Rows expected = rows_in(rows.take(9));

  StreamRows other(data, 4);
  other.load_state(within);
  EXPECT_EQ(rows_in(other.take(9)), expected);
  other.load_state(at_boundary);
  EXPECT_THAT(rows_in(other.take(2)), ElementsAre(8, 9));
  EXPECT_EQ(other.take(100).size(), 20);
  EXPECT_EQ(other.take(1).size(), 0);
  EXPECT_THROW(StreamRows(data, 4).skip(31), DataError);
}

// Samplers and epochs of so many steps, over rows that are read at random.

TEST(BatchPipeline, EpochsOfSoManyStepsGoOnFromOneAnother) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"x", {}, false}}}};
  matrices.spec.targets = {number_target("x")};
  matrices.inputs = {at::arange(45, at::kFloat).unsqueeze(1)};
  matrices.targets = matrices.inputs;
  const MatrixRows rows(std::move(matrices));
  ThreadBudget(2).run([&] {
    BatchPipeline by_pass(rows, numbers(0, 45), {}, by(10), RandomStreams(1));
    Epoch all;
    for (const Epoch& pass : epochs_of(by_pass, 3))
      all.insert(all.end(), pass.begin(), pass.end());
    ASSERT_EQ(all.size(), 15U);
    BatchPipeline by_steps(rows, numbers(0, 45), {}, by(10, 4), RandomStreams(1));
    EXPECT_EQ(by_steps.batches_per_epoch(), 4);
    EXPECT_TRUE(by_steps.state(1, 2).empty());
    const std::vector<Epoch> epochs = epochs_of(by_steps, 3);
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_EQ(epochs[i / 4][i % 4], all[i]) << i;
    BatchPipeline resumed(rows, numbers(0, 45), {}, by(10, 4), RandomStreams(1));
    EXPECT_EQ(rest_of(*resumed.epoch(2, 1)), Epoch(all.begin() + 9, all.begin() + 12));
  });
}

/// Each row twice, one after the other.
class Twice final : public Sampler {
  std::int64_t do_samples(std::int64_t rows) const override { return 2 * rows; }
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override {
    Rows rows;
    for (const std::int64_t row : request.rows)
      rows.insert(rows.end(), 2, row);
    return rows_listed(std::move(rows));
  }
};

TEST(BatchPipeline, TakesRowsAsASamplerHasThemOfTablesAndOfWindows) {
  const Twice twice;
  PipelineOptions options = by(4);
  options.sampler = &twice;
  const NumberedStream data(7);
  ThreadBudget(2).run([&] {
    BatchPipeline pipeline({&data, 1, 3}, {}, options, RandomStreams(1));
    for (const Epoch& epoch : epochs_of(pipeline, 2)) {
      EXPECT_THAT(epoch, ElementsAre(ElementsAre(1, 1, 2, 2), ElementsAre(3, 3),
                                     ElementsAre(4, 4, 5, 5), ElementsAre(6, 6)));
    }
  });
}

/// Writes down how the rows it is given are called.
class Names final : public Sampler {
 public:
  mutable std::vector<std::string> heard;

 private:
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override {
    for (const std::int64_t row : request.rows)
      heard.push_back(request.reader->describe_row(row));
    return rows_listed({request.rows.begin(), request.rows.end()});
  }
};

TEST(BatchPipeline, RowsOfAWindowAreCalledByTheirNumbersInTheStream) {
  const Names names;
  PipelineOptions options = by(3);
  options.sampler = &names;
  const NumberedStream data(7);
  ThreadBudget(1).run([&] {
    BatchPipeline pipeline({&data, 1, 3}, {}, options, RandomStreams(1));
    rest_of(*pipeline.epoch(0));
  });
  EXPECT_THAT(names.heard, ElementsAre("row 1", "row 2", "row 3", "row 4", "row 5", "row 6"));
}

}  // namespace
}  // namespace treadle::engine
