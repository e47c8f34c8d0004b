#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/chunked_stream.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/tiny_data.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_streams {
namespace {

constexpr std::int64_t kRows = 41;

/// In chunks of six rows; what derives from it does one thing otherwise.
class Stream : public ChunkedStream {
 public:
  Stream(const RowReader& reader, std::int64_t size) : ChunkedStream(size), reader_(reader) {}

 protected:
  Chunk do_load(std::int64_t number, Batch& rows) override {
    const std::int64_t begin = number * 6;
    if (begin >= reader_.rows())
      return Chunk::kEnd;
    rows = gathered(reader_, begin, std::min(begin + 6, reader_.rows()));
    return Chunk::kRows;
  }

  const RowReader& reader_;
};

template <typename T>
class Data : public TinyData {
 public:
  explicit Data(std::uint64_t seed = 1)
      : TinyData([seed] { return tiny_regression(kRows, seed); }) {}

 private:
  void* do_ask(std::string_view) override { return nullptr; }
  std::unique_ptr<BatchStream> do_stream(std::int64_t size) const override {
    return std::make_unique<T>(rows(), size);
  }
  std::optional<std::int64_t> do_stream_rows() const override { return kRows; }
};

class ReadAtRandom final : public TinyData {
 public:
  ReadAtRandom() : TinyData([] { return tiny_regression(kRows, 1); }) {}
};

class NumbersRowsByChunk final : public Stream {
 public:
  using Stream::Stream;

 private:
  Chunk do_load(std::int64_t number, Batch& rows) override {
    const Chunk chunk = Stream::do_load(number, rows);
    if (chunk == Chunk::kRows)
      rows.rows = rows.rows.remainder(6);
    return chunk;
  }
};

class TellsAnotherLength final : public Data<Stream> {
  std::optional<std::int64_t> do_stream_rows() const override { return kRows + 1; }
};

class NeverSays final : public Data<Stream> {
  std::optional<std::int64_t> do_stream_rows() const override { return kEndless; }
};

class HashesItself final : public Data<Stream> {
  std::string do_content_hash() const override {
    static int count = 0;
    std::string hash(32, '0');
    hash.back() = static_cast<char>('0' + ++count % 10);
    return hash;
  }
};

/// Of its own accord, without ChunkedStream.
class ByHand : public BatchStream {
 public:
  ByHand(const RowReader& reader, std::int64_t size) : reader_(reader), size_(size) {}

 protected:
  bool do_next(Batch& batch) override {
    const std::int64_t count = std::min(size_, reader_.rows() - next_);
    if (count <= 0)
      return false;
    batch = gathered(reader_, next_, next_ + count);
    next_ += count;
    return true;
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("next", nlohmann::json(next_));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    next_ = state.value("next").get<std::int64_t>();
  }

  const RowReader& reader_;
  const std::int64_t size_;
  std::int64_t next_ = 0;
};

class LosesItsPlace final : public ByHand {
 public:
  using ByHand::ByHand;

 private:
  void do_load_state(const StateDict&) override {}
};

class HasBatchesOfItsOwnSize final : public ByHand {
 public:
  HasBatchesOfItsOwnSize(const RowReader& reader, std::int64_t) : ByHand(reader, 4) {}
};

class ReusesItsMemory final : public ByHand {
 public:
  using ByHand::ByHand;

 private:
  bool do_next(Batch& batch) override {
    Batch next;
    if (!ByHand::do_next(next))
      return false;
    if (mine_.size() != next.size())
      mine_ = copy_of(next);
    mine_.inputs[0].copy_(next.inputs[0]);
    mine_.rows.copy_(next.rows);
    batch = mine_;
    return true;
  }
  Batch mine_;
};

class EmptiesTheBatchAtTheEnd final : public ByHand {
 public:
  using ByHand::ByHand;

 private:
  bool do_next(Batch& batch) override {
    const bool more = ByHand::do_next(batch);
    if (!more)
      batch = Batch();
    return more;
  }
};

template <typename T>
StreamCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

/// Other rows in each object.
StreamCase drawn_anew() {
  return {"IsDrawnAnewEachTime", [count = std::make_shared<std::uint64_t>(0)] {
            return std::make_unique<Data<Stream>>(++*count);
          }};
}

std::vector<Wrong<StreamCase>> all() {
  return {
      {one<ReadAtRandom>("CanBeReadAtRandom"), {"CannotBeReadAtRandom"}},
      {one<Data<NumbersRowsByChunk>>("NumbersRowsByChunk"), {"RowsAreNumberedFromZero"}},
      {one<TellsAnotherLength>("TellsAnotherLength"), {"EndsWhereItsLengthTells"}},
      {one<NeverSays>("ClaimsToBeEndless"), {"EndsWhereItsLengthTells"}},
      {one<HashesItself>("HashesWhatIsNotData"), {"TheSameDataHasTheSameHash"}},
      {one<Data<LosesItsPlace>>("LosesItsPlace"), {"GoesOnFromItsStateAfterAnyBatch"}},
      {one<Data<HasBatchesOfItsOwnSize>>("HasBatchesOfItsOwnSize"),
       {"BatchesHaveTheSizeAskedForAndRowsAsTheSpecHasThem", "TwoStreamsKnowNothingOfEachOther"}},
      {one<Data<ReusesItsMemory>>("ReusesItsMemory"),
       {"BatchesStayAsTheyAreWhileSomebodyHoldsThem", "EveryPassHasTheSameRowsInBatchesOfAnySize",
        "GoesOnFromItsStateAfterAnyBatch", "RowsAreNumberedFromZero",
        "TwoStreamsKnowNothingOfEachOther"}},
      {one<Data<EmptiesTheBatchAtTheEnd>>("EmptiesTheBatchAtTheEnd"), {"EndsWhereItsLengthTells"}},
      {drawn_anew(), {"TheSameDataHasTheSameHash", "StateRoundTripGivesEqualRows"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, StreamContract,
                         ::testing::Values(one<Data<Stream>>("InChunks"),
                                           one<Data<ByHand>>("ByHand")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, StreamContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_streams

std::vector<Defect> stream_defects() {
  return defects_of("StreamContract", wrong_streams::all());
}

}  // namespace treadle::testing
