#include <treadle/testing/data/data_contract.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <c10/util/intrusive_ptr.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class DataClaims : public ::testing::WithParamInterface<DataCase> {
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

  static bool fits_shape(const at::Tensor& values, const std::vector<std::int64_t>& shape) {
    if (values.dim() != static_cast<std::int64_t>(shape.size()) + 1)
      return false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != kVaries && shape[d] != values.size(static_cast<std::int64_t>(d) + 1))
        return false;
    }
    return true;
  }

  /// `got` are the rows from `begin` on of `whole`, but for padding that none of them needs.
  static void expect_rows(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& whole,
                          std::int64_t begin, const char* what) {
    ASSERT_EQ(got.size(), whole.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].defined(), whole[i].defined()) << what << ' ' << i;
      if (!got[i].defined())
        continue;
      const at::Tensor rows = whole[i].slice(0, begin, begin + got[i].size(0));
      EXPECT_TRUE(same(got[i], trimmed(rows, got[i].sizes()))) << what << ' ' << i;
    }
  }

  /// Of inputs, targets and weights: what holds each number of the source exactly.
  static bool is_of_numbers(at::ScalarType dtype) {
    return dtype == at::kFloat || dtype == at::kDouble;
  }

  static void expect_role(const DataSpec& spec, const PortSpec& port, const at::Tensor& values) {
    switch (port.role) {
      case Role::kFeatures:
        EXPECT_TRUE(is_of_numbers(port.dtype) ||
                    (port.dtype == at::kByte && port.shape.size() >= 2));
        break;
      case Role::kImage:
        EXPECT_TRUE(is_of_numbers(port.dtype) || port.dtype == at::kByte);
        EXPECT_EQ(port.shape.size(), 3U);
        break;
      case Role::kTokens:
        EXPECT_EQ(port.dtype, at::kLong);
        EXPECT_GE(values.min().item<std::int64_t>(), 0);
        EXPECT_LT(values.max().item<std::int64_t>(), port.vocabulary_size);
        break;
      case Role::kMask:
        EXPECT_EQ(port.dtype, at::kBool);
        break;
      case Role::kLengths:
        EXPECT_TRUE(port.shape.empty());
        EXPECT_GE(values.min().item<std::int64_t>(), 0);
        [[fallthrough]];
      case Role::kCategories:
      case Role::kSegments:
        EXPECT_EQ(port.dtype, at::kLong);
        break;
    }
    const bool describes_another =
        port.role == Role::kLengths || port.role == Role::kMask || port.role == Role::kSegments;
    EXPECT_EQ(port.is_auxiliary(), describes_another);
    if (port.is_auxiliary()) {
      EXPECT_NO_THROW(spec.input_index(port.of));
    }
    const bool is_table = port.role == Role::kCategories || !port.columns.empty();
    if (is_table) {
      const auto width = static_cast<std::int64_t>(port.columns.size());
      EXPECT_EQ(port.shape, std::vector<std::int64_t>{width});
    }
  }

  static void expect_column(const Column& column, const at::Tensor& values) {
    SCOPED_TRACE(column.name);
    if (column.categories.empty()) {
      EXPECT_EQ(c10::isFloatingType(values.scalar_type()), true);
      EXPECT_TRUE(column.may_be_missing || values.isfinite().all().item<bool>());
      return;
    }
    EXPECT_EQ(values.scalar_type(), at::kLong);
    EXPECT_LT(values.max().item<std::int64_t>(),
              static_cast<std::int64_t>(column.categories.size()));
    EXPECT_GE(values.min().item<std::int64_t>(), column.may_be_missing ? -1 : 0);
  }

  static void expect_kind(const TargetSpec& target, const at::Tensor& values) {
    EXPECT_TRUE(target.kind == TargetKind::kClasses ? values.scalar_type() == at::kLong
                                                    : is_of_numbers(values.scalar_type()))
        << "targets are int64 for classes, else float32 or float64";
    if (target.kind == TargetKind::kNumbers)
      return;
    EXPECT_GE(values.min().item<double>(), 0);
    if (target.kind == TargetKind::kClasses) {
      EXPECT_LT(values.max().item<std::int64_t>(), target.class_count());
      return;
    }
    EXPECT_EQ(target.class_count(), target.width());
    EXPECT_LE(values.max().item<double>(), 1);
    if (target.kind == TargetKind::kLabels) {
      EXPECT_TRUE(values.eq(0).logical_or(values.eq(1)).all().item<bool>());
    }
  }
};

}  // namespace

LINKS_CLAIMS_OF(Data)

CLAIM(Data, TouchesNothingBeforeItIsOpened) {
  const auto data = GetParam().make();

  EXPECT_EQ(data->ask<RowReader>(), nullptr);
  EXPECT_THROW(data->spec(), ContractViolation);
}

CLAIM(Data, IsOpenedOnce) {
  const auto data = opened();

  EXPECT_THROW(data->open({}), ContractViolation);
}

CLAIM(Data, InputsLookAsTheSpecSays) {
  const auto data = opened();
  const DataSpec& spec = data->spec();
  const std::int64_t rows = reader(*data).rows();
  ASSERT_GE(rows, 5);

  const Batch batch = everything(*data);

  ASSERT_EQ(batch.inputs.size(), spec.inputs.size());
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    SCOPED_TRACE(spec.inputs[port].name);
    const at::Tensor& input = batch.inputs[port];
    EXPECT_EQ(input.scalar_type(), spec.inputs[port].dtype);
    EXPECT_EQ(input.size(0), rows);
    EXPECT_TRUE(fits_shape(input, spec.inputs[port].shape));
    expect_role(spec, spec.inputs[port], input);
    const std::vector<Column>& columns = spec.inputs[port].columns;
    for (std::size_t c = 0; c < columns.size(); ++c)
      expect_column(columns[c], input.select(1, static_cast<std::int64_t>(c)));
  }
  EXPECT_EQ(batch.weights.defined(), spec.has_weights);
  EXPECT_FALSE(reader(*data).describe_row(rows - 1).empty());
}

CLAIM(Data, TargetsLookAsTheSpecSays) {
  const auto data = opened();
  const std::vector<TargetSpec>& specs = data->spec().targets;

  const Batch batch = everything(*data);

  ASSERT_FALSE(specs.empty());
  ASSERT_EQ(batch.targets.size(), specs.size());
  ASSERT_TRUE(batch.position_weights.empty() || batch.position_weights.size() == specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    SCOPED_TRACE(specs[i].name);
    const at::Tensor& values = batch.targets[i];
    EXPECT_EQ(values.size(0), reader(*data).rows());
    EXPECT_TRUE(fits_shape(values, specs[i].shape));
    expect_kind(specs[i], values);
    EXPECT_TRUE(same(reader(*data).targets(i), values));
    const at::Tensor own_weights = reader(*data).position_weights(i);
    if (batch.position_weights.empty() || !batch.position_weights[i].defined()) {
      EXPECT_FALSE(own_weights.defined()) << "position_weights() are not those of the batch";
      continue;
    }
    const at::Tensor& weights = batch.position_weights[i];
    EXPECT_TRUE(is_of_numbers(weights.scalar_type()));
    EXPECT_EQ(weights.sizes(), values.sizes().slice(0, specs[i].position_dimensions() + 1));
    EXPECT_GE(weights.min().item<double>(), 0);
    if (own_weights.defined()) {
      EXPECT_TRUE(same(weights, own_weights.mul(weights.gt(0))))
          << "position_weights() are not those of the batch";
    } else {
      EXPECT_TRUE(weights.eq(0).logical_or(weights.eq(1)).all().item<bool>())
          << "position_weights() has none";
    }
  }
}

CLAIM(Data, NamesAreUnique) {
  const auto data = opened();
  std::set<std::string> inputs;
  std::set<std::string> targets;

  for (const PortSpec& port : data->spec().inputs)
    EXPECT_TRUE(inputs.insert(port.name).second) << port.name;
  for (const TargetSpec& target : data->spec().targets)
    EXPECT_TRUE(targets.insert(target.name).second) << target.name;
}

// A batch's padding is 0 and weighs nothing, and is no longer than its longest row.
CLAIM(Data, PaddingIsZeroAndHasNoWeight) {
  const auto data = opened();
  const DataSpec& spec = data->spec();
  const Batch whole = everything(*data);
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    const at::Tensor lengths = reader(*data).lengths(port);
    if (!lengths.defined())
      continue;
    SCOPED_TRACE(spec.inputs[port].name);
    ASSERT_EQ(lengths.sizes(), (std::vector<std::int64_t>{whole.size()}));
    for (std::int64_t row = 0; row < whole.size(); ++row) {
      const std::int64_t length = lengths[row].item<std::int64_t>();
      const Batch alone = gathered(reader(*data), row, row + 1);
      EXPECT_EQ(alone.inputs[port].size(1), std::max<std::int64_t>(length, 1)) << "row " << row;
      EXPECT_FALSE(whole.inputs[port][row].slice(0, length).any().item<bool>()) << "row " << row;
      for (std::size_t i = 0; i < spec.targets.size(); ++i) {
        if (spec.targets[i].padded_like != spec.inputs[port].name)
          continue;
        ASSERT_EQ(whole.position_weights.size(), spec.targets.size());
        ASSERT_EQ(alone.position_weights.size(), spec.targets.size());
        EXPECT_FALSE(whole.targets[i][row].slice(0, length).any().item<bool>()) << "row " << row;
        const at::Tensor& weights = whole.position_weights[i];
        EXPECT_FALSE(weights[row].slice(0, length).any().item<bool>()) << "row " << row;
        EXPECT_TRUE(same(weights[row].slice(0, 0, length),
                         alone.position_weights[i][0].slice(0, 0, length)))
            << "row " << row;
      }
    }
  }
}

CLAIM(Data, WhatBelongsToARowHasOneValuePerRow) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const std::vector<std::int64_t> rows = {reader(*data).rows()};

  EXPECT_TRUE(same(whole.rows, at::arange(rows[0], at::kLong)));
  ASSERT_EQ(whole.original_targets.size(), whole.targets.size());
  for (std::size_t i = 0; i < whole.targets.size(); ++i)
    EXPECT_TRUE(whole.original_targets[i].is_same(whole.targets[i])) << "target " << i;
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

CLAIM(Data, StreamsEachRowOnceInOrder) {
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
      expect_rows(batch.inputs, whole.inputs, begin, "input");
      expect_rows(batch.targets, whole.targets, begin, "target");
      expect_rows(batch.position_weights, whole.position_weights, begin, "position weights");
      begin += count;
    }
    EXPECT_EQ(begin, rows);
  }
}

CLAIM(Data, AStreamThatHasEndedLeavesTheBatchAlone) {
  const auto data = opened();
  const auto stream = data->stream(2);
  Batch last;
  for (std::int64_t left = (reader(*data).rows() + 1) / 2; left > 0; --left)
    ASSERT_TRUE(stream->next(last));
  const Batch before = copy_of(last);

  EXPECT_FALSE(stream->next(last));

  expect_same(last, before);
}

CLAIM(Data, AStreamKeepsNoBatches) {
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

CLAIM(Data, AStreamContinuesFromItsState) {
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

CLAIM(Data, TwoStreamsKnowNothingOfEachOther) {
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

CLAIM(Data, GathersIntoTheMemoryThatIsThere) {
  const auto data = opened();
  Batch batch = gathered(reader(*data), 0, 3);
  std::vector<std::pair<const void*, std::vector<std::int64_t>>> memory;
  for (const at::Tensor& input : batch.inputs)
    memory.emplace_back(input.data_ptr(), input.sizes().vec());

  reader(*data).gather(row_numbers(2, 5), batch);

  for (std::size_t port = 0; port < memory.size(); ++port) {
    const auto& [place, sizes] = memory[port];
    if (batch.inputs[port].sizes() == sizes) {  // texts of another length need other memory
      EXPECT_EQ(batch.inputs[port].data_ptr(), place) << "input " << port;
    }
  }
  expect_same(batch, gathered(reader(*data), 2, 5));
}

CLAIM(Data, GathersNoRows) {
  const auto data = opened();

  const Batch batch = gathered(reader(*data), 2, 2);

  EXPECT_EQ(batch.size(), 0);
  const Batch whole = everything(*data);
  expect_rows(batch.inputs, whole.inputs, 0, "input");
  expect_rows(batch.targets, whole.targets, 0, "target");
}

CLAIM(Data, GathersInTheOrderAskedForWithoutWritingToOtherBatches) {
  const auto data = opened();
  const Batch whole = everything(*data);
  const Batch copy = copy_of(whole);
  const std::vector<std::int64_t> some = {4, 0, 4, 2};
  Batch batch;

  reader(*data).gather(some, batch);

  for (std::size_t i = 0; i < some.size(); ++i) {
    const Batch row = batch.slice(static_cast<std::int64_t>(i), 1);
    expect_rows(row.inputs, whole.inputs, some[i], "input");
    expect_rows(row.targets, whole.targets, some[i], "target");
  }
  Batch neighbours = everything(*data);
  for (Batch* mine : {&batch, &neighbours}) {
    mine->inputs[0].zero_();
    for (at::Tensor& target : mine->targets)
      target.zero_();
  }
  expect_same(whole, copy);
  expect_same(everything(*data), copy);
}

CLAIM(Data, SeveralThreadsMayGatherAtOnce) {
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

CLAIM(Data, TheSameDataHasTheSameHash) {
  const auto one = opened();
  const auto other = opened();

  EXPECT_EQ(one->content_hash().size(), 32U);
  EXPECT_EQ(one->content_hash(), other->content_hash());
  expect_same(everything(*one), everything(*other));
}

CLAIM(Data, StateRoundTripGivesEqualRows) {
  const auto training = opened();

  const auto data = opened_for(Purpose::kEvaluate, *training);

  EXPECT_EQ(data->spec(), training->spec());
  expect_same(everything(*data), everything(*training));
}

CLAIM(Data, PredictingNeedsNoTarget) {
  const auto training = opened();

  const auto data = opened_for(Purpose::kPredict, *training);

  EXPECT_EQ(data->spec().inputs, training->spec().inputs);
  EXPECT_TRUE(data->spec().targets.empty());
  EXPECT_TRUE(everything(*data).targets.empty());
  EXPECT_TRUE(same(everything(*data).inputs[0], everything(*training).inputs[0]));
}

CLAIM(Data, TextsOfColumnsAreOnePerRowWhereThereAreAny) {
  const auto data = opened();
  const auto* const source = data->ask<SourceColumns>();
  if (source == nullptr)
    return;
  std::vector<std::string> names;
  for (const PortSpec& port : data->spec().inputs) {
    for (const Column& column : port.columns)
      names.push_back(column.name);
  }
  const auto rows = static_cast<std::size_t>(reader(*data).rows());

  const std::vector<std::vector<std::string>> texts = source->texts(names);

  ASSERT_EQ(texts.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(texts[i].size(), rows) << names[i];
  EXPECT_TRUE(source->texts({}).empty());
  EXPECT_THROW(source->texts({"no column has this name"}), DataError);
}

CLAIM(Data, RefusesAnEmptyState) {
  EXPECT_THROW(GetParam().make()->load_state(StateDict()), StorageError);
}

}  // namespace treadle::testing
