#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/data/batch_list.h>
#include <treadle/core/data/chunked_stream.h>
#include <treadle/core/data/sampler.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Batch rows_of(std::int64_t first, std::int64_t count, std::int64_t width) {
  Batch batch;
  batch.rows = at::arange(first, first + count, at::kLong);
  batch.inputs = {at::ones({count, width}, at::kFloat).mul(batch.rows.unsqueeze(1))};
  batch.targets = {batch.rows.to(at::kFloat).unsqueeze(1)};
  batch.original_targets = batch.targets;
  return batch;
}

TEST(Batch, JoinsPartsAndPadsTheShorterWithZeros) {
  const Batch joined = Batch::join(std::vector{rows_of(0, 2, 3), rows_of(2, 1, 2)});

  EXPECT_TRUE(at::equal(joined.rows, at::tensor({0, 1, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(joined.inputs[0],
                        at::tensor({0, 0, 0, 1, 1, 1, 2, 2, 0}, at::kFloat).view({3, 3})));
  EXPECT_TRUE(at::equal(joined.targets[0], at::tensor({0, 1, 2}, at::kFloat).view({3, 1})));
  EXPECT_TRUE(joined.original_targets[0].is_same(joined.targets[0]));
  EXPECT_FALSE(joined.weights.defined());
}

TEST(Batch, PartsOfOtherDataAreAProgrammingError) {
  Batch weighted = rows_of(0, 2, 3);
  weighted.weights = at::ones({2});
  EXPECT_THROW(Batch::join(std::vector{weighted, rows_of(2, 1, 3)}), ContractViolation);
}

/// Chunks of 3, none, 1 and 4 rows, and an end.
class Chunks final : public ChunkedStream {
 public:
  explicit Chunks(std::int64_t batch_size) : ChunkedStream(batch_size) {}

  int loads = 0;

 private:
  Chunk do_load(std::int64_t number, Batch& rows) override {
    ++loads;
    constexpr std::int64_t kFirst[] = {0, 3, 3, 4, 8};
    if (number >= 4)
      return Chunk::kEnd;
    const std::int64_t count = kFirst[number + 1] - kFirst[number];
    if (count == 0)
      return Chunk::kSkipped;
    rows = rows_of(kFirst[number], count, 1);
    rows.rows = at::Tensor();
    return Chunk::kRows;
  }
};

std::vector<std::vector<std::int64_t>> rest_of(BatchStream& stream) {
  std::vector<std::vector<std::int64_t>> batches;
  for (Batch batch; stream.next(batch); batch = Batch()) {
    const auto* rows = batch.rows.data_ptr<std::int64_t>();
    batches.emplace_back(rows, rows + batch.size());
    EXPECT_TRUE(at::equal(batch.inputs[0].flatten(), batch.rows.to(at::kFloat)));
  }
  return batches;
}

TEST(ChunkedStream, CutsChunksIntoBatchesAndSkipsEmptyOnes) {
  Chunks by_two(2);
  EXPECT_THAT(rest_of(by_two), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5),
                                           ElementsAre(6, 7)));
  Chunks by_five(5);
  EXPECT_THAT(rest_of(by_five), ElementsAre(ElementsAre(0, 1, 2, 3, 4), ElementsAre(5, 6, 7)));
  Batch batch;
  EXPECT_FALSE(by_five.next(batch));
}

TEST(ChunkedStream, GoesOnAtAnyRowAndLoadsNoChunkBeforeIt) {
  for (const std::int64_t size : {1, 2, 3, 5}) {
    Chunks whole(size);
    const auto all = rest_of(whole);
    for (std::size_t read = 0; read <= all.size(); ++read) {
      Chunks first(size);
      Batch batch;
      for (std::size_t i = 0; i < read; ++i)
        ASSERT_TRUE(first.next(batch));
      Chunks second(size);
      second.load_state(first.state());
      EXPECT_EQ(rest_of(second),
                std::vector(all.begin() + static_cast<std::ptrdiff_t>(read), all.end()));
      EXPECT_LE(second.loads, whole.loads - (read == all.size() ? 4 : 0));
    }
  }
}

std::vector<std::int64_t> filled(const SampleOrder& order, std::int64_t begin, std::size_t count) {
  std::vector<std::int64_t> rows(count);
  order.fill(begin, rows);
  return rows;
}

TEST(BatchList, BeginsBeforeItsFirstBatchAndGoesOnFromAState) {
  const std::vector<Batch> batches = {rows_of(0, 2, 3), rows_of(2, 1, 3), rows_of(3, 2, 3)};
  BatchList list(batches);
  const auto next_row = [](BatchList& stream) {
    Batch batch;
    return stream.next(batch) ? batch.rows[0].item<std::int64_t>() : -1;
  };

  EXPECT_EQ(next_row(list), 0);
  const StateDict after_one = list.state();
  EXPECT_EQ(next_row(list), 2);
  EXPECT_EQ(next_row(list), 3);
  EXPECT_EQ(next_row(list), -1);
  EXPECT_EQ(next_row(list), -1);
  list.reset();
  EXPECT_EQ(next_row(list), 0);

  BatchList other(batches);
  other.load_state(after_one);
  EXPECT_EQ(next_row(other), 2);
  BatchList none({});
  EXPECT_EQ(next_row(none), -1);
  EXPECT_THROW(none.load_state(after_one), StorageError);
}

TEST(SampleOrder, IsAFunctionOfThePosition) {
  const std::vector<std::int64_t> rows{7, 3, 9, 4, 1};
  const auto in_order = rows_in_order(rows);
  EXPECT_THAT(filled(*in_order, 1, 3), ElementsAre(3, 9, 4));

  const auto shuffled = rows_shuffled(rows, 5);
  const std::vector<std::int64_t> all = filled(*shuffled, 0, 5);
  EXPECT_THAT(all, ::testing::UnorderedElementsAreArray(rows));
  EXPECT_EQ(filled(*shuffled, 3, 2), std::vector(all.begin() + 3, all.end()));
  EXPECT_EQ(filled(*shuffled, 0, 2), std::vector(all.begin(), all.begin() + 2));
  EXPECT_NE(filled(*rows_shuffled(rows, 6), 0, 5), all);
}

TEST(SampleOrder, PositionsBehindItsEndAreAProgrammingError) {
  const std::vector<std::int64_t> rows{7, 3};
  const auto order = rows_in_order(rows);
  std::vector<std::int64_t> three(3);
  EXPECT_THROW(order->fill(0, three), ContractViolation);
  EXPECT_THROW(order->fill(-1, std::span(three).subspan(0, 1)), ContractViolation);
}

}  // namespace
}  // namespace treadle
