#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <c10/util/intrusive_ptr.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data_provider.h>
#include <treadle/testing/at_once.h>
#include <treadle/testing/batches.h>
#include <treadle/testing/case_name.h>

/// What every DataProvider that can be read at random must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Data, DataContract, ::testing::Values(
///         DataCase{"Moons", [] { return plugin().make<DataProvider>("moons"); }}), CaseName());
namespace treadle::testing {

struct DataCase {
  std::string name;
  /// A new object each time, of the same data: at least 5 rows.
  std::function<std::unique_ptr<DataProvider>()> make;
};

class DataContract : public ::testing::TestWithParam<DataCase> {
 protected:
  using Purpose = OpenRequest::Purpose;

  static std::unique_ptr<DataProvider> opened(const OpenRequest& request = {}) {
    auto data = GetParam().make();
    data->open(request);
    return data;
  }
  /// Opened for a model that `training` was the data of.
  static std::unique_ptr<DataProvider> opened_for(Purpose purpose, const DataProvider& training) {
    auto data = GetParam().make();
    data->load_state(training.state().snapshot());
    OpenRequest request;
    request.purpose = purpose;
    request.seed = 99;
    data->open(request);
    return data;
  }

  static const RowReader& reader(const DataProvider& data) { return *data.ask<RowReader>(); }

  static Batch everything(const DataProvider& data) {
    return gathered(reader(data), 0, reader(data).rows());
  }
};

TEST_P(DataContract, TouchesNothingBeforeItIsOpened) {
  const auto data = GetParam().make();

  EXPECT_EQ(data->ask<RowReader>(), nullptr);
  EXPECT_THROW(data->spec(), ContractViolation);
}

TEST_P(DataContract, IsOpenedOnce) {
  const auto data = opened();

  EXPECT_THROW(data->open({}), ContractViolation);
}

TEST_P(DataContract, RowsLookAsTheSpecSays) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    OpenRequest request;
    request.dtype = dtype;
    const auto data = opened(request);
    const DataSpec& spec = data->spec();
    const std::int64_t rows = reader(*data).rows();
    ASSERT_GE(rows, 5);

    const Batch batch = everything(*data);

    ASSERT_EQ(batch.inputs.size(), spec.inputs.size());
    for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
      const at::Tensor& input = batch.inputs[port];
      EXPECT_EQ(input.scalar_type(), dtype);
      EXPECT_EQ(input.size(0), rows);
      EXPECT_EQ(input.sizes().slice(1).vec(), spec.inputs[port].shape);
      const std::vector<Column>& columns = spec.inputs[port].columns;
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const at::Tensor values = input.select(1, static_cast<std::int64_t>(c));
        EXPECT_TRUE(columns[c].may_be_missing || values.isfinite().all().item<bool>())
            << columns[c].name;
        if (!columns[c].categories.empty()) {
          EXPECT_LT(values.nan_to_num().max().item<double>(), columns[c].categories.size());
          EXPECT_GE(values.nan_to_num().min().item<double>(), 0);
        }
      }
    }
    if (spec.target.kind == TargetKind::kClasses) {
      EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
      EXPECT_EQ(batch.targets.sizes(), (std::vector<std::int64_t>{rows}));
      EXPECT_GE(batch.targets.min().item<std::int64_t>(), 0);
      EXPECT_LT(batch.targets.max().item<std::int64_t>(), spec.target.class_count());
    } else {
      EXPECT_EQ(batch.targets.scalar_type(), dtype);
      EXPECT_EQ(batch.targets.sizes(), (std::vector<std::int64_t>{rows, spec.target.width}));
    }
    EXPECT_EQ(batch.weights.defined(), spec.has_weights);
    EXPECT_TRUE(same(reader(*data).targets(), batch.targets));
    EXPECT_FALSE(reader(*data).describe_row(rows - 1).empty());
  }
}

TEST_P(DataContract, WhatBelongsToARowHasOneValuePerRow) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const std::vector<std::int64_t> rows = {reader(*data).rows()};

  EXPECT_TRUE(same(whole.rows, at::arange(rows[0], at::kLong)));
  EXPECT_TRUE(whole.original_targets.is_same(whole.targets));
  if (whole.weights.defined()) {
    EXPECT_EQ(whole.weights.sizes(), rows);
    EXPECT_GE(whole.weights.min().item<double>(), 0);
  }
  if (const at::Tensor groups = reader(*data).groups(); groups.defined()) {
    EXPECT_EQ(groups.sizes(), rows);
    EXPECT_EQ(groups.scalar_type(), at::kLong);
  }
  if (const at::Tensor times = reader(*data).timestamps(); times.defined()) {
    EXPECT_EQ(times.sizes(), rows);
    EXPECT_EQ(times.scalar_type(), at::kDouble);
    EXPECT_TRUE(times.isfinite().all().item<bool>());
  }
  std::set<std::string> places;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(rows[0], 50); ++row)
    EXPECT_TRUE(places.insert(reader(*data).describe_row(row)).second) << "row " << row;
}

TEST_P(DataContract, StreamsEachRowOnceInOrder) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const std::int64_t rows = reader(*data).rows();
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{3}, rows - 1, rows, rows + 1}) {
    SCOPED_TRACE("batches of " + std::to_string(size));
    std::vector<Batch> batches;  // not copies: a batch stays as it is while somebody holds it

    const auto stream = data->stream(size);
    for (Batch batch; stream->next(batch); batch = Batch())
      batches.push_back(batch);

    ASSERT_EQ(static_cast<std::int64_t>(batches.size()), (rows + size - 1) / size);
    std::int64_t begin = 0;
    for (const Batch& batch : batches) {
      const std::int64_t count = std::min(size, rows - begin);  // the last one has what is left
      ASSERT_EQ(batch.size(), count);
      EXPECT_TRUE(same(batch.rows, whole.rows.slice(0, begin, begin + count)));
      for (std::size_t port = 0; port < whole.inputs.size(); ++port)
        EXPECT_TRUE(same(batch.inputs[port], whole.inputs[port].slice(0, begin, begin + count)));
      EXPECT_TRUE(same(batch.targets, whole.targets.slice(0, begin, begin + count)));
      begin += count;
    }
    EXPECT_EQ(begin, rows);
  }
}

TEST_P(DataContract, AStreamThatHasEndedLeavesTheBatchAlone) {
  const auto data = opened();
  const auto stream = data->stream(2);
  Batch last;
  for (std::int64_t left = (reader(*data).rows() + 1) / 2; left > 0; --left)
    ASSERT_TRUE(stream->next(last));
  const Batch before = copy_of(last);

  EXPECT_FALSE(stream->next(last));

  expect_same(last, before);
}

TEST_P(DataContract, AStreamKeepsNoBatches) {
  const auto data = opened();
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> given;

  for (int epoch = 0; epoch < 20; ++epoch) {
    const auto stream = data->stream(1);
    for (Batch batch; given.size() < 200 && stream->next(batch); batch = Batch())
      given.emplace_back(batch.inputs[0].getIntrusivePtr());
  }

  const auto lives = [](const auto& tensor) { return !tensor.expired(); };
  EXPECT_EQ(std::count_if(given.begin(), given.end(), lives), 0);
}

TEST_P(DataContract, AStreamContinuesFromItsState) {
  const auto data = opened();
  const std::int64_t batches = (reader(*data).rows() + 1) / 2;
  for (std::int64_t before = 0; before <= std::min<std::int64_t>(batches, 4); ++before) {
    SCOPED_TRACE("after " + std::to_string(before) + " batches");
    const auto first = data->stream(2);
    Batch batch;
    for (std::int64_t i = 0; i < before; ++i)
      ASSERT_TRUE(first->next(batch));
    const auto second = data->stream(2);

    second->load_state(first->state().snapshot());

    for (std::int64_t i = before; i < batches; ++i) {
      Batch expected;
      ASSERT_TRUE(first->next(expected));
      ASSERT_TRUE(second->next(batch));
      expect_same(batch, expected);
    }
    EXPECT_FALSE(second->next(batch));
  }
}

TEST_P(DataContract, TwoStreamsKnowNothingOfEachOther) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const auto one = data->stream(1);
  const auto other = data->stream(2);
  Batch batch;
  ASSERT_TRUE(other->next(batch));

  ASSERT_TRUE(one->next(batch));
  ASSERT_TRUE(other->next(batch));
  ASSERT_TRUE(one->next(batch));

  EXPECT_TRUE(same(batch.rows, whole.rows.slice(0, 1, 2)));
}

TEST_P(DataContract, GathersIntoTheMemoryThatIsThere) {
  const auto data = opened();
  Batch batch = gathered(reader(*data), 0, 3);
  std::vector<const void*> memory;
  for (const at::Tensor& input : batch.inputs)
    memory.push_back(input.data_ptr());

  reader(*data).gather(row_numbers(2, 5), batch);

  for (std::size_t port = 0; port < memory.size(); ++port)
    EXPECT_EQ(batch.inputs[port].data_ptr(), memory[port]) << "input " << port;
  expect_same(batch, gathered(reader(*data), 2, 5));
}

TEST_P(DataContract, GathersNoRows) {
  const auto data = opened();

  const Batch batch = gathered(reader(*data), 2, 2);

  EXPECT_EQ(batch.size(), 0);
  const Batch whole = everything(*data);
  for (std::size_t port = 0; port < whole.inputs.size(); ++port)
    EXPECT_EQ(batch.inputs[port].sizes(), whole.inputs[port].slice(0, 0, 0).sizes());
  EXPECT_EQ(batch.targets.sizes(), whole.targets.slice(0, 0, 0).sizes());
}

TEST_P(DataContract, GathersInTheOrderAskedForWithoutWritingToOtherBatches) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const Batch copy = copy_of(whole);
  const std::vector<std::int64_t> some = {4, 0, 4, 2};
  Batch batch;

  reader(*data).gather(some, batch);

  for (std::size_t i = 0; i < some.size(); ++i) {
    for (std::size_t port = 0; port < whole.inputs.size(); ++port) {
      EXPECT_TRUE(
          same(batch.inputs[port][static_cast<std::int64_t>(i)], whole.inputs[port][some[i]]));
    }
  }
  Batch neighbours = everything(*data);
  for (Batch* mine : {&batch, &neighbours}) {
    mine->inputs[0].zero_();
    mine->targets.zero_();
  }
  expect_same(whole, copy);
  expect_same(everything(*data), copy);
}

TEST_P(DataContract, SeveralThreadsMayGatherAtOnce) {
  const auto data = opened();
  const Batch expected = everything(*data);
  constexpr std::size_t kThreads = 4;
  std::vector<Batch> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 20; ++repeat)
      reader(*data).gather(row_numbers(0, reader(*data).rows()), results[thread]);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const Batch& result : results)
    expect_same(result, expected);
}

TEST_P(DataContract, TheSameDataHasTheSameHash) {
  const auto one = opened();
  const auto other = opened();

  EXPECT_EQ(one->content_hash().size(), 32U);
  EXPECT_EQ(one->content_hash(), other->content_hash());
  expect_same(everything(*one), everything(*other));
}

TEST_P(DataContract, StateRoundTripGivesEqualRows) {
  const auto training = opened();

  const auto data = opened_for(Purpose::kEvaluate, *training);

  EXPECT_EQ(data->spec(), training->spec());
  expect_same(everything(*data), everything(*training));
}

TEST_P(DataContract, PredictingNeedsNoTarget) {
  const auto training = opened();

  const auto data = opened_for(Purpose::kPredict, *training);

  EXPECT_EQ(data->spec().inputs, training->spec().inputs);
  EXPECT_EQ(data->spec().target.kind, TargetKind::kNone);
  EXPECT_FALSE(everything(*data).targets.defined());
  EXPECT_TRUE(same(everything(*data).inputs[0], everything(*training).inputs[0]));
}

TEST_P(DataContract, RefusesAnEmptyState) {
  EXPECT_THROW(GetParam().make()->load_state(StateDict()), StorageError);
}

}  // namespace treadle::testing
