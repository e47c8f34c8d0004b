#include <treadle/testing/data/stream_contract.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/core/data/data_provider.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class StreamClaims : public ::testing::WithParamInterface<StreamCase> {
 protected:
  /// Of each stream so many rows are looked at, or as many as there are.
  static constexpr std::int64_t kMost = 60;

  static std::unique_ptr<DataProvider> opened() {
    auto data = GetParam().make();
    data->open({});
    return data;
  }

  /// The batches of a stream until kMost rows have come, or it ends.
  static std::vector<Batch> batches_of(BatchStream& stream) {
    std::vector<Batch> batches;
    std::int64_t rows = 0;
    for (Batch batch; rows < kMost && stream.next(batch); batch = Batch()) {
      rows += batch.size();
      batches.push_back(batch);
    }
    return batches;
  }

  static Batch joined(const std::vector<Batch>& batches) {
    const Batch all = Batch::join(batches);
    return all.slice(0, std::min(all.size(), kMost));
  }
  static Batch rows_of(const DataProvider& data, std::int64_t batch_size) {
    const auto stream = data.stream(batch_size);
    return joined(batches_of(*stream));
  }

  static bool fits(const at::Tensor& values, const std::vector<std::int64_t>& shape) {
    if (values.dim() != static_cast<std::int64_t>(shape.size()) + 1)
      return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != kVaries && shape[d] != values.size(static_cast<std::int64_t>(d) + 1))
        return false;
    }
    return true;
  }
};

}  // namespace

LINKS_CLAIMS_OF(Stream)

CLAIM(Stream, CannotBeReadAtRandom) {
  EXPECT_EQ(opened()->ask<RowReader>(), nullptr) << "such data has a contract of its own";
}

CLAIM(Stream, BatchesHaveTheSizeAskedForAndRowsAsTheSpecHasThem) {
  const auto data = opened();
  const DataSpec& spec = data->spec();
  for (const std::int64_t size : {1, 3, 7}) {
    const auto stream = data->stream(size);
    const std::vector<Batch> batches = batches_of(*stream);
    ASSERT_FALSE(batches.empty());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Batch& batch = batches[i];
      if (i + 1 < batches.size()) {
        EXPECT_EQ(batch.size(), size);
      }
      ASSERT_EQ(batch.inputs.size(), spec.inputs.size());
      ASSERT_EQ(batch.targets.size(), spec.targets.size());
      for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
        EXPECT_EQ(batch.inputs[port].size(0), batch.size());
        EXPECT_EQ(batch.inputs[port].scalar_type(), spec.inputs[port].dtype);
        EXPECT_TRUE(fits(batch.inputs[port], spec.inputs[port].shape)) << "input " << port;
      }
      for (std::size_t target = 0; target < spec.targets.size(); ++target)
        EXPECT_TRUE(fits(batch.targets[target], spec.targets[target].shape)) << "target " << target;
      EXPECT_EQ(batch.weights.defined(), spec.has_weights);
    }
  }
}

CLAIM(Stream, RowsAreNumberedFromZero) {
  const Batch rows = rows_of(*opened(), 4);
  for (std::int64_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows.rows.data_ptr<std::int64_t>()[i], i);
}

CLAIM(Stream, EveryPassHasTheSameRowsInBatchesOfAnySize) {
  const auto data = opened();
  const Batch expected = rows_of(*data, 1);
  for (const std::int64_t size : {1, 2, 5, 100}) {
    SCOPED_TRACE("batches of " + std::to_string(size));
    expect_same(rows_of(*data, size), expected);
  }
}

CLAIM(Stream, BatchesStayAsTheyAreWhileSomebodyHoldsThem) {
  const auto data = opened();
  const auto stream = data->stream(2);
  Batch first;
  ASSERT_TRUE(stream->next(first));
  const Batch copy = copy_of(first);
  Batch next;
  for (int i = 0; i < 10 && stream->next(next); ++i) {
  }
  expect_same(first, copy);
}

CLAIM(Stream, GoesOnFromItsStateAfterAnyBatch) {
  const auto data = opened();
  for (const std::int64_t size : {1, 3}) {
    const auto whole = data->stream(size);
    const std::vector<Batch> expected = batches_of(*whole);
    for (std::size_t before = 0; before < expected.size(); ++before) {
      SCOPED_TRACE("after " + std::to_string(before) + " batches");
      const auto first = data->stream(size);
      for (std::size_t i = 0; i < before; ++i) {
        Batch batch;
        ASSERT_TRUE(first->next(batch));
      }
      const auto second = data->stream(size);
      second->load_state(first->state().snapshot());
      Batch batch;
      ASSERT_TRUE(second->next(batch));
      expect_same(batch, expected[before]);
    }
  }
}

CLAIM(Stream, TwoStreamsKnowNothingOfEachOther) {
  const auto data = opened();
  const Batch expected = rows_of(*data, 1);
  const auto one = data->stream(1);
  const auto other = data->stream(2);
  Batch batch;
  ASSERT_TRUE(other->next(batch));
  ASSERT_TRUE(one->next(batch));
  ASSERT_TRUE(other->next(batch));
  Batch second;
  ASSERT_TRUE(one->next(second));
  expect_same(second, expected.slice(1, 1));
}

CLAIM(Stream, SeveralThreadsMayReadStreamsOfTheirOwn) {
  const auto data = opened();
  const Batch expected = rows_of(*data, 3);
  constexpr std::size_t kThreads = 4;
  std::vector<Batch> found(kThreads);
  const auto errors =
      at_once(kThreads, [&](std::size_t thread) { found[thread] = rows_of(*data, 3); });
  EXPECT_EQ(errors, kNoErrors);
  for (const Batch& rows : found)
    expect_same(rows, expected);
}

CLAIM(Stream, EndsWhereItsLengthTells) {
  const auto data = opened();
  const auto stream = data->stream(7);
  Batch batch;
  std::int64_t rows = 0;
  for (bool more = true; more && rows < 10000;) {
    const Batch before = batch;
    more = stream->next(batch);
    if (more) {
      rows += batch.size();
    } else {
      EXPECT_EQ(batch.size(), before.size()) << "at the end the batch is left alone";
    }
  }
  const std::optional<std::int64_t> told = data->stream_rows();
  if (told == DataProvider::kEndless) {
    EXPECT_GE(rows, 10000);
  } else if (told && *told < 10000) {
    EXPECT_EQ(rows, *told);
  }
  if (rows >= 10000)
    return;
  EXPECT_FALSE(stream->next(batch)) << "the end is the end";
}

CLAIM(Stream, TheSameDataHasTheSameHash) {
  const auto one = opened();
  EXPECT_EQ(one->content_hash().size(), 32U);
  EXPECT_EQ(one->content_hash(), opened()->content_hash());
}

CLAIM(Stream, StateRoundTripGivesEqualRows) {
  const auto training = opened();
  auto data = GetParam().make();
  data->load_state(training->state().snapshot());
  OpenRequest request;
  request.purpose = OpenRequest::Purpose::kEvaluate;
  request.seed = 99;
  data->open(request);
  EXPECT_EQ(data->spec(), training->spec());
  expect_same(rows_of(*data, 4), rows_of(*training, 4));
}

}  // namespace treadle::testing
