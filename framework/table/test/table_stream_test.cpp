#include "table_stream.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>

#include "listed_table.h"

namespace treadle::table {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

/// Rows of all kinds; the last number alone needs float64, the last category comes late.
Listed mixed(std::size_t rows) {
  RandomBits random(3);
  Listed table{{"a", "b", "kind", "w", "class"}, {}};
  for (std::size_t row = 0; row < rows; ++row) {
    const bool is_last = row + 1 == rows;
    table.rows.push_back({is_last ? 0.1 : static_cast<double>(random.below(1000)),
                          row % 7 == 3 ? Cell() : Cell(random.uniform() < 0.5 ? 0.25 : 0.75),
                          std::string(is_last        ? "a"
                                      : row % 2 == 0 ? "red"
                                                     : "blue"),
                          static_cast<double>(row % 3),
                          std::int64_t{static_cast<std::int64_t>(row % 5)}});
  }
  return table;
}

const Json kMixed = {{"categorical", {"kind"}}, {"weight", "w"}, {"missing", "nan"}};

OpenRequest classification() {
  OpenRequest request;
  request.task = Task::kClassification;
  return request;
}

Json streamed(Json parameters = kMixed) {
  parameters["in_memory"] = false;
  return parameters;
}

std::vector<Batch> batches_of(BatchStream& stream) {
  std::vector<Batch> batches;
  for (Batch batch; stream.next(batch);)
    batches.push_back(batch);
  return batches;
}

void expect_equal(const Batch& one, const Batch& other) {
  ASSERT_EQ(one.inputs.size(), other.inputs.size());
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    EXPECT_EQ(one.inputs[i].scalar_type(), other.inputs[i].scalar_type());
    EXPECT_TRUE(one.inputs[i].nan_to_num(-7).equal(other.inputs[i].nan_to_num(-7)));
  }
  EXPECT_TRUE(one.targets[0].equal(other.targets[0]));
  EXPECT_TRUE(one.weights.equal(other.weights));
  EXPECT_TRUE(one.rows.equal(other.rows));
}

TEST(StreamedTable, HasTheRowsAndTheSpecOfTheTableInMemory) {
  ListedData whole(mixed(20'000), kMixed);
  ListedData streamed_data(mixed(20'000), streamed());
  whole.open(classification());
  streamed_data.open(classification());

  EXPECT_EQ(streamed_data.ask<RowReader>(), nullptr);
  EXPECT_EQ(streamed_data.stream_rows(), 20'000);
  EXPECT_EQ(to_json(streamed_data.spec()), to_json(whole.spec()));
  EXPECT_EQ(streamed_data.spec().inputs[0].dtype, at::kDouble);
  const std::vector<Batch> batches = batches_of(*streamed_data.stream(777));
  EXPECT_EQ(batches.size(), 26U);
  expect_equal(Batch::join(batches), all_rows(whole));
}

TEST(StreamedTable, GoesOnWithTheRowAfterTheSavedOne) {
  ListedData data(mixed(20'000), streamed());
  data.open(classification());
  const std::vector<Batch> batches = batches_of(*data.stream(1000));
  const auto first = data.stream(1000);
  Batch batch;
  for (int i = 0; i < 9; ++i)
    first->next(batch);

  ListedData again(mixed(20'000), streamed());
  again.load_state(data.state());
  again.open(classification());
  const auto resumed = again.stream(1000);
  resumed->load_state(first->state());

  EXPECT_EQ(again.content_hash(), data.content_hash());
  ASSERT_TRUE(resumed->next(batch));
  expect_equal(batch, batches[9]);
}

TEST(StreamedTable, LeavesOutRowsAsTheTableInMemoryDoes) {
  Json parameters = kMixed;
  parameters["missing"] = "drop_row";
  ListedData whole(mixed(10'000), parameters);
  ListedData data(mixed(10'000), streamed(parameters));
  whole.open(classification());
  data.open(classification());

  expect_equal(Batch::join(batches_of(*data.stream(64))), all_rows(whole));
}

TEST(StreamedTable, IsReadWithTheStateOfATableInMemory) {
  ListedData whole(mixed(9000), kMixed);
  whole.open(classification());
  ListedData data(mixed(9000), streamed());
  data.load_state(whole.state());
  OpenRequest request;
  request.purpose = OpenRequest::Purpose::kEvaluate;
  data.open(request);

  expect_equal(Batch::join(batches_of(*data.stream(64))), all_rows(whole));
}

TEST(StreamedTable, NoticesRowsThatChangeUnderTheRun) {
  ListedData data(mixed(20'000), streamed());
  data.open(classification());
  const auto stream = data.stream(8192);
  Batch batch;
  ASSERT_TRUE(stream->next(batch));
  data.table().rows[12'000][2] = std::string("blue");
  data.table().rows[12'001][2] = std::string("blue");

  EXPECT_EQ(message_of([&] { stream->next(batch); }), "the list: was changed while it was read");
}

TEST(StreamedTable, RefusesWhatATableInMemoryRefuses) {
  for (const auto& [change, message] :
       std::vector<std::pair<std::function<void(Listed&)>, std::string>>{
           {[](Listed& table) { table.rows.clear(); }, "the list: the table has no row"},
           {[](Listed& table) {
              for (auto& row : table.rows)
                row[4] = std::int64_t{1};
            },
            "the list: target \"class\" has one class only (\"1\"); a classifier needs at least "
            "two"},
           {[](Listed& table) {
              for (auto& row : table.rows)
                row[3] = 0.0;
            },
            "the list: every row has the weight 0"}}) {
    Listed table = mixed(100);
    change(table);
    ListedData data(table, streamed());
    EXPECT_EQ(message_of([&] { data.open(classification()); }), message);
  }
}

}  // namespace
}  // namespace treadle::table
