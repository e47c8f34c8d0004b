#include <unistd.h>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

#include <treadle/base/random.h>
#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/testing/support/at_once.h>

#include "array_fixture.h"
#include "chunked_rows.h"
#include "mapped_rows.h"

namespace treadle::arrays {
namespace {

using testing::expect_same;
using testing::gathered;
using testing::row_numbers;

constexpr const char* kAccesses[] = {"memory", "mapped", "chunked"};

/// 103 rows in three files, two inputs of types the run does not have.
class AccessTest : public ArrayFixture {
 protected:
  static constexpr std::int64_t kRows = 103;

  AccessTest() {
    write_table<double>("x-0.npy", 50, 4);
    write_table<double>("x-1.npy", 1, 4, 50);
    write_table<double>("x-2.npy", 52, 4, 51);
    std::vector<std::uint8_t> pixels;
    std::vector<std::int64_t> classes;
    for (int i = 0; i < kRows * 6; ++i)
      pixels.push_back(static_cast<std::uint8_t>(i * 7));
    for (int i = 0; i < kRows; ++i)
      classes.push_back(i % 4);
    write<std::uint8_t>("p.npy", {kRows, 2, 3}, pixels);
    write<std::int64_t>("y.npy", {kRows}, classes);
  }

  std::unique_ptr<DataProvider> open_with(const char* access, std::int64_t resident = 600) const {
    return open({{"inputs", {{"table", path("x-?.npy")}, {"image", path("p.npy")}}},
                 {"access", access},
                 {"chunk_rows", 7},
                 {"resident_bytes", resident}});
  }

  /// All batches of two shuffled epochs.
  static std::vector<Batch> epochs(const DataProvider& data, int workers) {
    std::vector<Batch> batches;
    engine::PipelineOptions options;
    options.batch_size = 8;
    options.shuffle = true;
    engine::ThreadBudget budget(workers);
    budget.run([&] {
      engine::BatchPipeline pipeline(rows(data), row_numbers(0, kRows), {}, options,
                                     RandomStreams(3));
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        const auto stream = pipeline.epoch(epoch);
        for (Batch batch; stream->next(batch);)
          batches.push_back(testing::copy_of(batch));
      }
    });
    return batches;
  }

  /// Cuts a file after so many bytes, as somebody does who writes it anew.
  void cut(std::string_view name, std::int64_t bytes) const {
    ASSERT_EQ(::truncate(path(name).c_str(), bytes), 0);
  }
  std::int64_t size_of(std::string_view name) const {
    return static_cast<std::int64_t>(std::filesystem::file_size(file(name)));
  }
};

TEST_F(AccessTest, EachGivesTheSameBitsForTheSameBatches) {
  const auto expected = epochs(*open_with("memory"), 1);
  ASSERT_EQ(expected.size(), 26U);

  for (const char* access : kAccesses) {
    for (const int workers : {1, 2, 3, 8}) {
      SCOPED_TRACE(std::string(access) + ", " + std::to_string(workers) + " workers");
      const auto got = epochs(*open_with(access), workers);

      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        expect_same(got[i], expected[i]);
    }
  }
}

TEST_F(AccessTest, EachGivesTheSameRowsOneByOneBackwardsAndTwice) {
  const auto memory = open_with("memory");
  for (const char* access : kAccesses) {
    const auto data = open_with(access);
    std::vector<std::int64_t> order;
    for (std::int64_t row = kRows - 1; row >= 0; --row)
      order.insert(order.end(), {row, row / 2});
    Batch got;
    Batch expected;

    rows(*data).gather(order, got);
    rows(*memory).gather(order, expected);

    expect_same(got, expected);
    for (std::int64_t row = 0; row < kRows; ++row)
      expect_same(gathered(rows(*data), row, row + 1), gathered(rows(*memory), row, row + 1));
  }
}

/// Of the type of the run, in one file: whoever needs neighbours finds them where they lie.
TEST_F(AccessTest, RowsAsTheyLieAreThoseOfTheBatches) {
  write_table("plain.npy", 20, 4);
  write<float>("numbers.npy", {20}, std::vector<float>(20, 3));
  std::vector<float> weights(20);
  std::iota(weights.begin(), weights.end(), 1.0F);
  write<float>("w.npy", {20}, weights);
  for (const char* access : kAccesses) {
    SCOPED_TRACE(access);
    const auto data = open({{"inputs", path("plain.npy")},
                            {"target", path("numbers.npy")},
                            {"weights", path("w.npy")},
                            {"access", access}});
    const ContiguousRows* const rows_here = contiguous_rows(rows(*data));
    ASSERT_NE(rows_here, nullptr);

    const at::Tensor input = rows_here->contiguous_input(0);

    ASSERT_EQ(input.defined(), access != std::string("chunked"));
    if (input.defined()) {
      EXPECT_TRUE(input.equal(batch(*data).inputs[0]));
    }
    EXPECT_TRUE(rows_here->contiguous_weights().equal(batch(*data).weights));
    EXPECT_NO_THROW(rows_here->expect_unchanged());
  }
}

TEST_F(AccessTest, RowsThatMustBeConvertedOrLeftOutDoNotLieAsBatchesHaveThem) {
  const auto several = open_with("mapped");
  write_table<std::int32_t>("wide.npy", 20, 4);
  write<float>("numbers.npy", {20}, std::vector<float>(20, 3));
  const auto converted =
      open({{"inputs", path("wide.npy")}, {"target", path("numbers.npy")}, {"access", "mapped"}});
  std::vector<float> gappy(40, 1);
  gappy[7] = static_cast<float>(kNan);
  write<float>("gappy.npy", {20, 2}, gappy);
  const auto dropped = open({{"inputs", path("gappy.npy")},
                             {"target", path("numbers.npy")},
                             {"missing", "drop_row"},
                             {"access", "mapped"}});

  // The image of bytes is in one file; the table is in three.
  EXPECT_TRUE(contiguous_rows(rows(*several))->contiguous_input(0).defined());
  EXPECT_FALSE(contiguous_rows(rows(*several))->contiguous_input(1).defined());
  EXPECT_FALSE(contiguous_rows(rows(*converted))->contiguous_input(0).defined());
  EXPECT_FALSE(contiguous_rows(rows(*dropped))->contiguous_input(0).defined());
}

/// Targets that stay in their file are checked as inputs are.
TEST_F(AccessTest, AnErrorNamesTheFileOfTargetsThatChanged) {
  write_five();
  const auto data = open({{"access", "mapped"}});
  batch(*data);

  std::filesystem::resize_file(file("y.npy"), 100);

  EXPECT_THAT(message_of([&] { batch(*data); }), ::testing::HasSubstr("y.npy"));
  EXPECT_THAT(message_of([&] { contiguous_rows(rows(*data))->expect_unchanged(); }),
              ::testing::HasSubstr("y.npy"));
}

TEST_F(AccessTest, EightThreadsGatherAtOnce) {
  const Batch whole = gathered(rows(*open_with("memory")), 0, kRows);
  for (const char* access : kAccesses) {
    const auto data = open_with(access);

    const auto errors = testing::at_once(8, [&](std::size_t thread) {
      RandomBits bits(thread);
      Batch batch;
      for (int i = 0; i < 200; ++i) {
        std::vector<std::int64_t> wanted(10);
        for (std::int64_t& row : wanted)
          row = static_cast<std::int64_t>(bits.below(kRows));
        rows(*data).gather(wanted, batch);
        for (std::size_t port = 0; port < whole.inputs.size(); ++port) {
          TREADLE_EXPECTS(
              testing::same(batch.inputs[port], whole.inputs[port].index_select(0, batch.rows)),
              "a row is another one");
        }
      }
    });

    EXPECT_EQ(errors, testing::kNoErrors) << access;
  }
}

/// An array of 100 rows of 16 bytes in two files, in chunks of 10 rows.
class ChunkedRowsTest : public ArrayFixture {
 protected:
  static constexpr std::size_t kChunkBytes = 160;

  ChunkedRowsTest() {
    write_table("a.npy", 45, 4);
    write_table("b.npy", 55, 4, 45);
  }

  ChunkedRows chunked(const std::shared_ptr<ChunkCache>& cache) const {
    return {std::make_shared<const ArrayFiles>(Paths{file("a.npy"), file("b.npy")}), 10, cache};
  }

  static void expect_rows(const ChunkedRows& source, const std::vector<std::int64_t>& wanted) {
    at::Tensor out = at::empty({static_cast<std::int64_t>(wanted.size()), 4}, at::kFloat);
    source.gather(wanted, out);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (std::int64_t c = 0; c < 4; ++c) {
        EXPECT_EQ(out[static_cast<std::int64_t>(i)][c].item<float>(),
                  static_cast<float>(100 * wanted[i] + c));
      }
    }
  }
};

TEST_F(ChunkedRowsTest, ABatchReadsEachChunkOnce) {
  const auto cache = std::make_shared<ChunkCache>(kChunkBytes);
  const ChunkedRows source = chunked(cache);

  // 0-9, 40-44 and 45-54 are chunks: one does not reach over the end of a file.
  expect_rows(source, {3, 44, 46, 5, 40, 54, 9});

  EXPECT_EQ(cache->loads(), 3);
  EXPECT_EQ(cache->most_bytes(), kChunkBytes);
}

TEST_F(ChunkedRowsTest, RowsInOrderReadEachChunkOnceHoweverSmallTheBudget) {
  const auto cache = std::make_shared<ChunkCache>(kChunkBytes);
  const ChunkedRows source = chunked(cache);

  for (std::int64_t row = 0; row < 100; row += 4)
    expect_rows(source, row_numbers(row, row + 4));

  EXPECT_EQ(cache->loads(), 11);  // five of a.npy, six of b.npy
}

TEST_F(ChunkedRowsTest, WhatFitsIsReadOnceInAnyOrder) {
  const auto cache = std::make_shared<ChunkCache>(100 * 16);
  const ChunkedRows source = chunked(cache);

  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    expect_rows(source, random_permutation(100, RandomBits(epoch)));

  EXPECT_EQ(cache->loads(), 11);
  EXPECT_EQ(cache->most_bytes(), 100U * 16);
}

TEST_F(ChunkedRowsTest, EightThreadsStayWithinTheBudget) {
  const auto cache = std::make_shared<ChunkCache>(2 * kChunkBytes);
  const ChunkedRows source = chunked(cache);

  const auto errors = testing::at_once(8, [&](std::size_t thread) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto order = random_permutation(100, RandomBits(20 * thread + i));
      at::Tensor out = at::empty({100, 4}, at::kFloat);
      source.gather(order, out);
      const float* const numbers = out.data_ptr<float>();
      for (std::size_t r = 0; r < order.size(); ++r) {
        TREADLE_EXPECTS(numbers[4 * r + 3] == static_cast<float>(100 * order[r] + 3),
                        "a row is another one");
      }
    }
  });

  EXPECT_EQ(errors, testing::kNoErrors);
  EXPECT_LE(cache->most_bytes(), 2 * kChunkBytes);
}

TEST_F(ChunkedRowsTest, AChunkThatCannotBeReadIsNamedEachTimeAndTheOthersAreRead) {
  const auto cache = std::make_shared<ChunkCache>(kChunkBytes);
  const ChunkedRows source = chunked(cache);
  expect_rows(source, {50});
  const std::string kept = [&] {
    std::ifstream in(file("b.npy"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  ASSERT_EQ(::truncate(path("b.npy").c_str(), 500), 0);

  const std::string first = message_of([&] { expect_rows(source, {3, 62}); });
  write_bytes("b.npy", kept);

  EXPECT_EQ(first,
            "b.npy: rows 10 to 19: has changed since the data was opened (it had 1008 bytes, now "
            "it has 500); nothing may write to the files of a run");
  EXPECT_EQ(message_of([&] { expect_rows(source, {62}); }), first);
  expect_rows(source, {3, 44});
}

TEST_F(AccessTest, AFileThatIsCutWhileItIsMappedIsAnErrorAndNoSignal) {
  const auto data = open_with("mapped");
  const Batch before = gathered(rows(*data), 3, 9);
  const std::int64_t size = size_of("x-2.npy");
  cut("x-2.npy", 100);

  EXPECT_EQ(message_of([&] { gathered(rows(*data), 100, 101); }),
            "x-2.npy: has changed since the data was opened (it had " + std::to_string(size) +
                " bytes, now it has 100); nothing may write to the files of a run");
  expect_same(gathered(rows(*data), 3, 9), before);
}

TEST_F(AccessTest, AFileThatIsWrittenToIsAnErrorWhereItIsStillRead) {
  write_table("x.npy", 20);
  write_table("y.npy", 20, 1);
  for (const char* access : kAccesses) {
    write_table("x.npy", 20);
    const auto data = open({{"access", access}, {"chunk_rows", 5}});
    gathered(rows(*data), 0, 5);

    const auto written = std::filesystem::last_write_time(file("x.npy"));
    std::filesystem::last_write_time(file("x.npy"), written + std::chrono::nanoseconds(1));

    const std::string message = message_of([&] { gathered(rows(*data), 7, 8); });
    const std::string changed =
        "has changed since the data was opened; nothing may write to the files of a run";
    EXPECT_EQ(message, std::string(access) == "memory"   ? "no error"
                       : std::string(access) == "mapped" ? "x.npy: " + changed
                                                         : "x.npy: rows 5 to 9: " + changed);
  }
}

TEST_F(AccessTest, AFileThatAnotherOneReplacesStaysMapped) {
  write_table("x.npy", 20);
  write_table("y.npy", 20, 1);
  const auto data = open();
  const Batch before = gathered(rows(*data), 0, 20);
  write_table("new.npy", 20, 3, 500);

  std::filesystem::rename(file("new.npy"), file("x.npy"));

  expect_same(gathered(rows(*data), 0, 20), before);
}

TEST_F(AccessTest, APipelineSaysWhichBatchCouldNotBeRead) {
  write_table("x.npy", 20);
  write_table("y.npy", 20, 1);
  const auto data = open({{"access", "chunked"}, {"chunk_rows", 5}});
  engine::ThreadBudget budget(2);
  budget.run([&] {
    engine::PipelineOptions options;
    options.batch_size = 4;
    engine::BatchPipeline pipeline(rows(*data), row_numbers(0, 20), {}, options, RandomStreams(3));
    const auto stream = pipeline.epoch(0);
    // The first batch, which measures the memory, has been prepared; the others are not yet.
    cut("x.npy", 100);
    Batch batch;
    EXPECT_EQ(message_of([&] {
                while (stream->next(batch)) {
                }
              }),
              "x.npy: rows 5 to 9: has changed since the data was opened (it had 368 bytes, now it "
              "has 100); nothing may write to the files of a run (while preparing batch 2 of epoch "
              "1)");
  });
}

}  // namespace
}  // namespace treadle::arrays
