#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/tiny_data.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_data {
namespace {

MatrixRows::Matrices table() {
  return tiny_regression(41, 1);
}

/// One target of numbers, whose rows count half.
MatrixRows::Matrices weighed_table() {
  MatrixRows::Matrices matrices = table();
  matrices.position_weights = {at::full({41}, 0.5, at::kFloat)};
  return matrices;
}

/// A right one, for wrong ones to be made of.
class Right : public TinyData {
 public:
  explicit Right(const Make& make = table) : TinyData(make) {}
};

/// Streams rows that a list gives.
class ListStream : public BatchStream {
 public:
  ListStream(const RowReader& reader, std::vector<std::int64_t> rows, std::int64_t size)
      : reader_(reader), rows_(std::move(rows)), size_(static_cast<std::size_t>(size)) {}

 protected:
  virtual void read(std::span<const std::int64_t> rows, Batch& batch) {
    batch = Batch();
    reader_.gather(rows, batch);
  }
  virtual void end(Batch&) {}

  bool do_next(Batch& batch) override {
    if (next_ >= rows_.size()) {
      end(batch);
      return false;
    }
    const std::size_t count = std::min(size_, rows_.size() - next_);
    read(std::span(rows_).subspan(next_, count), batch);
    next_ += count;
    return true;
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("next", nlohmann::json(next_));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    next_ = state.value("next").get<std::size_t>();
  }

  const RowReader& reader_;

 private:
  std::vector<std::int64_t> rows_;
  std::size_t size_;
  std::size_t next_ = 0;
};

template <typename Stream>
class Streams : public Right {
 protected:
  std::unique_ptr<BatchStream> do_stream(std::int64_t size) const override {
    return std::make_unique<Stream>(rows(), row_numbers(0, rows().rows()), size);
  }
};

class RepeatsARow final : public Right {
  std::unique_ptr<BatchStream> do_stream(std::int64_t size) const override {
    auto list = row_numbers(0, rows().rows());
    list.push_back(list.back());
    return std::make_unique<ListStream>(rows(), list, size);
  }
};

class ReusingStream final : public ListStream {
 public:
  using ListStream::ListStream;

 private:
  void read(std::span<const std::int64_t> rows, Batch& batch) override {
    reader_.gather(rows, mine_);
    batch = mine_;
  }
  Batch mine_;
};

class ForgetfulStream final : public ListStream {
 public:
  using ListStream::ListStream;

 private:
  void do_load_state(const StateDict&) override {}
};

class TidyStream final : public ListStream {
 public:
  using ListStream::ListStream;

 private:
  void end(Batch& batch) override { batch = Batch(); }
};

/// Keeps every batch it ever gave.
class Hoarder final : public Right {
  class Stream final : public ListStream {
   public:
    Stream(std::vector<Batch>& all, const RowReader& reader, std::int64_t size)
        : ListStream(reader, row_numbers(0, reader.rows()), size), all_(all) {}

   private:
    void read(std::span<const std::int64_t> rows, Batch& batch) override {
      ListStream::read(rows, batch);
      all_.push_back(batch);
    }
    std::vector<Batch>& all_;
  };
  std::unique_ptr<BatchStream> do_stream(std::int64_t size) const override {
    return std::make_unique<Stream>(all_, rows(), size);
  }
  mutable std::vector<Batch> all_;
};

/// Has texts of its columns for the first row alone.
class LosesALine final : public Right {
  class Texts final : public SourceColumns {
    std::vector<std::vector<std::string>> do_texts(
        const std::vector<std::string>& names) const override {
      const std::vector<std::string> unknown = {"no column has this name"};
      if (names == unknown)
        throw DataError("there is no such column");
      return std::vector<std::vector<std::string>>(names.size(), {"of the first row"});
    }
  };
  void* do_ask(std::string_view id) override {
    return id == SourceColumns::kInterface ? static_cast<SourceColumns*>(&texts_)
                                           : Right::do_ask(id);
  }
  Texts texts_;
};

class HashesItsAddress final : public Right {
  std::string do_content_hash() const override {
    std::string hash = Right::do_content_hash();
    return hash.replace(0, 16, std::to_string(1000000000000000 + counter()++));
  }
  static std::int64_t& counter() {
    static std::int64_t count = 0;
    return count;
  }
};

class TakesAnyState final : public Right {
  void do_load_state(const StateDict& state) override {
    if (!state.empty())
      Right::do_load_state(state);
  }
};

class ReadsTooEarly final : public Right {
 public:
  ReadsTooEarly() { Right::do_open({}); }
};

/// Its reader is wrong in what `Reader` overrides.
template <typename Reader>
class ReadBy final : public Right {
 public:
  explicit ReadBy(const Make& make = table) : Right(make) {}

 private:
  void* do_ask(std::string_view id) override {
    void* right = Right::do_ask(id);
    if (right == nullptr)
      return nullptr;
    if (!reader_)
      reader_ = std::make_unique<Reader>(rows());
    return static_cast<RowReader*>(reader_.get());
  }
  std::unique_ptr<Reader> reader_;
};

class Forwarding : public RowReader {
 public:
  explicit Forwarding(const MatrixRows& rows) : matrices_(rows) {}

 protected:
  const DataSpec& do_spec() const override { return matrices_.spec(); }
  std::int64_t do_rows() const override { return matrices_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    matrices_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return matrices_.targets(target); }
  at::Tensor do_position_weights(std::size_t target) const override {
    return matrices_.position_weights(target);
  }
  at::Tensor do_lengths(std::size_t input) const override { return matrices_.lengths(input); }
  std::string do_describe_row(std::int64_t row) const override {
    return matrices_.describe_row(row);
  }

  const MatrixRows& matrices_;
};

/// Rows that follow each other are given as they lie in the table.
class GivesItsTable final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    Forwarding::do_gather(rows, out);
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count == matrices_.rows() && rows[0] == 0)
      out.inputs[0] = matrices_.matrices().inputs[0];
  }
};

class AllocatesEachTime final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    Batch fresh;
    matrices_.gather(rows, fresh);
    out.inputs.swap(fresh.inputs);
    out.targets = fresh.targets;
    out.weights = fresh.weights;
  }
};

class WeighsPadding final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    Forwarding::do_gather(rows, out);
    for (at::Tensor& weights : out.position_weights)
      weights = at::ones_like(weights);
  }
};

class HidesPositionWeights final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  at::Tensor do_position_weights(std::size_t) const override { return {}; }
};

class DescribesRowsAlike final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  std::string do_describe_row(std::int64_t) const override { return "a row"; }
};

class FailsWithoutRows final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    if (rows.empty())
      throw DataError("no rows");
    Forwarding::do_gather(rows, out);
  }
};

class SortsRows final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    std::vector<std::int64_t> sorted(rows.begin(), rows.end());
    std::sort(sorted.begin(), sorted.end());
    Forwarding::do_gather(sorted, out);
  }
};

class SharesItsScratch final : public Forwarding {
 public:
  using Forwarding::Forwarding;

 private:
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    Forwarding::do_gather(rows, out);
    if (!thread_.is_mine())
      out.inputs[0].zero_();
  }
  OneThread thread_;
};

/// All its streams are at one place.
class HasOnePlace final : public Right {
  class Stream final : public ListStream {
   public:
    Stream(StateDict& place, const RowReader& reader, std::int64_t size)
        : ListStream(reader, row_numbers(0, reader.rows()), size), place_(place) {
      place_ = ListStream::do_state();
    }

   private:
    bool do_next(Batch& batch) override {
      ListStream::do_load_state(place_);
      const bool more = ListStream::do_next(batch);
      place_ = ListStream::do_state();
      return more;
    }
    StateDict do_state() const override { return place_; }
    void do_load_state(const StateDict& state) override { place_ = state; }
    StateDict& place_;
  };
  std::unique_ptr<BatchStream> do_stream(std::int64_t size) const override {
    return std::make_unique<Stream>(place_, rows(), size);
  }
  mutable StateDict place_;
};

/// Gives the target where there is none to give.
class KnowsTheAnswers final : public DataProvider {
 public:
  KnowsTheAnswers() : inner_(std::make_unique<Right>()) {}

 private:
  void* do_ask(std::string_view id) override {
    return id == RowReader::kInterface
               ? const_cast<RowReader*>(std::as_const(*inner_).ask<RowReader>())
               : nullptr;
  }
  void do_open(const OpenRequest& request) override {
    OpenRequest other = request;
    if (other.purpose == OpenRequest::Purpose::kPredict)
      other.purpose = OpenRequest::Purpose::kEvaluate;
    inner_->open(other);
  }
  const DataSpec& do_spec() const override { return inner_->spec(); }
  std::string do_content_hash() const override { return inner_->content_hash(); }
  StateDict do_state() const override { return inner_->state(); }
  void do_load_state(const StateDict& state) override { inner_->load_state(state); }

  std::unique_ptr<Right> inner_;
};

template <typename T>
DataCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

DataCase made_by(std::string name, const TinyData::Make& make) {
  return {std::move(name), [make] { return std::make_unique<Right>(make); }};
}

std::vector<Wrong<DataCase>> all() {
  return {
      {one<LosesALine>("LosesALine"), {"TextsOfColumnsAreOnePerRowWhereThereAreAny"}},
      {one<RepeatsARow>("RepeatsARow"), {"StreamsEachRowOnceInOrder"}},
      {one<Streams<ReusingStream>>("ReusesItsMemory"), {"StreamsEachRowOnceInOrder"}},
      {one<Streams<ForgetfulStream>>("LosesItsPlace"), {"AStreamContinuesFromItsState"}},
      {one<Streams<TidyStream>>("EmptiesTheBatchAtTheEnd"),
       {"AStreamThatHasEndedLeavesTheBatchAlone"}},
      {one<Hoarder>("KeepsItsBatches"), {"AStreamKeepsNoBatches"}},
      {one<HashesItsAddress>("HashesWhatIsNotData"), {"TheSameDataHasTheSameHash"}},
      {one<TakesAnyState>("TakesAnyState"), {"RefusesAnEmptyState"}},
      {one<ReadsTooEarly>("ReadsTooEarly"), {"TouchesNothingBeforeItIsOpened"}},
      {one<ReadBy<GivesItsTable>>("GivesItsTable"),
       {"GathersInTheOrderAskedForWithoutWritingToOtherBatches"}},
      {one<ReadBy<AllocatesEachTime>>("AllocatesEachTime"), {"GathersIntoTheMemoryThatIsThere"}},
      {one<ReadBy<DescribesRowsAlike>>("DescribesRowsAlike"),
       {"WhatBelongsToARowHasOneValuePerRow"}},
      {one<ReadBy<FailsWithoutRows>>("FailsWithoutRows"), {"GathersNoRows"}},
      {one<ReadBy<SortsRows>>("SortsRows"),
       {"GathersInTheOrderAskedForWithoutWritingToOtherBatches"}},
      {one<ReadBy<SharesItsScratch>>("SharesItsScratch"), {"SeveralThreadsMayGatherAtOnce"}},
      {one<HasOnePlace>("HasOnePlaceForAllStreams"),
       {"TwoStreamsKnowNothingOfEachOther", "AStreamContinuesFromItsState"}},
      {one<KnowsTheAnswers>("GivesTargetsToPredict"), {"PredictingNeedsNoTarget"}},
      {made_by("HasHalves",
               [] {
                 MatrixRows::Matrices matrices = table();
                 matrices.spec.inputs[0].dtype = at::kHalf;
                 matrices.inputs[0] = matrices.inputs[0].to(at::kHalf);
                 matrices.targets[0] = matrices.targets[0].to(at::kHalf);
                 return matrices;
               }),
       {"InputsLookAsTheSpecSays", "PredictingNeedsNoTarget", "StateRoundTripGivesEqualRows",
        "TargetsLookAsTheSpecSays", "TheSameDataHasTheSameHash"}},
      {made_by("SaysAnotherDtype",
               [] {
                 MatrixRows::Matrices matrices = table();
                 matrices.spec.inputs[0].dtype = at::kDouble;
                 return matrices;
               }),
       {"InputsLookAsTheSpecSays"}},
      {made_by("HasUnknownTokens",
               [] {
                 MatrixRows::Matrices matrices = tiny_texts(20, 1);
                 matrices.spec.inputs[0].vocabulary_size = 5;
                 return matrices;
               }),
       {"InputsLookAsTheSpecSays"}},
      {made_by("HasUnknownClasses",
               [] {
                 MatrixRows::Matrices matrices = tiny_classification(31, 4, 1);
                 matrices.spec.targets[0].class_names.pop_back();
                 return matrices;
               }),
       {"TargetsLookAsTheSpecSays"}},
      {made_by("LeavesNoiseInItsPadding",
               [] {
                 MatrixRows::Matrices matrices = tiny_texts(20, 1);
                 matrices.inputs[0].add_(matrices.inputs[0].eq(0).to(at::kLong));
                 return matrices;
               }),
       {"PaddingIsZeroAndHasNoWeight"}},
      {made_by("NamesTwoTargetsAlike",
               [] {
                 MatrixRows::Matrices matrices = tiny_texts(20, 1);
                 matrices.spec.targets[1].name = matrices.spec.targets[0].name;
                 return matrices;
               }),
       {"NamesAreUnique"}},
      {{"WeighsItsPadding",
        [] { return std::make_unique<ReadBy<WeighsPadding>>([] { return tiny_texts(20, 1); }); }},
       {"PaddingIsZeroAndHasNoWeight"}},
      {{"HidesItsPositionWeights",
        [] { return std::make_unique<ReadBy<HidesPositionWeights>>(weighed_table); }},
       {"TargetsLookAsTheSpecSays"}},
      {made_by("HidesMissingValues",
               [] {
                 MatrixRows::Matrices matrices = table();
                 matrices.inputs[0][3][1] = std::numeric_limits<double>::quiet_NaN();
                 return matrices;
               }),
       {"InputsLookAsTheSpecSays"}},
      {made_by("IsDrawnAnewEachTime", [count = std::make_shared<std::uint64_t>(
                                           0)]() { return tiny_regression(41, ++*count); }),
       {"TheSameDataHasTheSameHash", "StateRoundTripGivesEqualRows", "PredictingNeedsNoTarget"}}};
}

INSTANTIATE_TEST_SUITE_P(
    Right, DataContract,
    ::testing::Values(made_by("Regression", table), made_by("WeighedTarget", weighed_table),
                      made_by("Classification", [] { return tiny_classification(31, 4, 1); }),
                      made_by("Sequences", [] { return tiny_sequences(23, 5, 1); }),
                      made_by("Texts", [] { return tiny_texts(20, 1); }),
                      one<Streams<ListStream>>("WithAStreamOfItsOwn"),
                      one<ReadBy<Forwarding>>("WithAReaderOfItsOwn")),
    CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, DataContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_data

std::vector<Defect> data_defects() {
  return defects_of("DataContract", wrong_data::all());
}

}  // namespace treadle::testing
