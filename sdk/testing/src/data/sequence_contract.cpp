#include <treadle/testing/data/sequence_contract.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>

#include "claim.h"

namespace treadle::testing {

MatrixRows::Matrices series_data(std::int64_t rows_of_each) {
  const TaskRandom random(5);
  const std::int64_t rows = 2 * rows_of_each;
  const at::Tensor number = at::arange(rows, at::kLong);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {2}, {{"a"}, {"b"}}}};
  matrices.spec.targets = {treadle::number_target("y"),
                           treadle::class_target("kind", {"down", "up"})};
  matrices.spec.has_weights = true;
  matrices.inputs = {at::randn({rows, 2})};
  matrices.targets = {at::randn({rows, 1}), number.remainder(2)};
  matrices.weights = number.remainder(5).add(1).to(at::kFloat);
  matrices.groups = number.floor_divide(rows_of_each).mul(7);
  matrices.timestamps = number.remainder(rows_of_each).to(at::kDouble).mul(0.5);
  return matrices;
}

namespace {

/// What the claims share.
class SequenceClaims : public ::testing::WithParamInterface<SequenceCase> {
 protected:
  using Matrices = MatrixRows::Matrices;

  static Matrices series() { return series_data(GetParam().rows); }
  static Matrices without_targets(Matrices matrices) {
    matrices.spec.targets.clear();
    matrices.targets.clear();
    return matrices;
  }
  static Matrices copied(Matrices matrices) {
    for (std::vector<at::Tensor>* const tensors : {&matrices.inputs, &matrices.targets}) {
      for (at::Tensor& tensor : *tensors)
        tensor = tensor.clone();
    }
    return matrices;
  }
  /// The first of them.
  static Matrices first_rows(Matrices matrices, std::int64_t count) {
    for (std::vector<at::Tensor>* const tensors : {&matrices.inputs, &matrices.targets}) {
      for (at::Tensor& tensor : *tensors)
        tensor = tensor.slice(0, 0, count);
    }
    for (at::Tensor* const tensor : {&matrices.weights, &matrices.groups, &matrices.timestamps}) {
      if (tensor->defined())
        *tensor = tensor->slice(0, 0, count);
    }
    return matrices;
  }

  static Batch everything(const SampleReader& samples) {
    return gathered(samples, 0, samples.rows());
  }

  static std::vector<std::int64_t> expected_sizes(std::int64_t rows,
                                                  const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> sizes = {rows};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    return sizes;
  }

  /// Segments count the groups of the sample's rows from 0.
  void expect_segments(const SampleReader& samples) const {
    const std::vector<PortSpec>& ports = samples.spec().inputs;
    const auto port = std::find_if(ports.begin(), ports.end(),
                                   [](const PortSpec& one) { return one.role == Role::kSegments; });
    ASSERT_NE(port, ports.end()) << "it joins series, and has no segments";
    const Batch all = everything(samples);
    const at::Tensor& segments = all.inputs[static_cast<std::size_t>(port - ports.begin())];
    for (std::int64_t i = 0; i < samples.rows(); ++i) {
      const RowRange rows = samples.source_rows(i).inputs;
      const at::Tensor groups = rows_.groups().slice(0, rows.begin, rows.end);
      const at::Tensor changes = groups.slice(0, 1).ne(groups.slice(0, 0, -1)).to(at::kLong);
      EXPECT_EQ(segments[i][0].item<std::int64_t>(), 0) << i;
      EXPECT_TRUE(segments[i].slice(0, 1).equal(changes.cumsum(0))) << i;
    }
  }

  /// What `make` samples of it throws, "" when nothing.
  std::string complaint_of(Matrices matrices) const {
    const MatrixRows rows(std::move(matrices));
    try {
      sequence_->samples(rows);
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "");
      return error.what();
    }
    return "";
  }

  const MatrixRows rows_{series()};
  const std::unique_ptr<SequenceProvider> sequence_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Sequence)

CLAIM(Sequence, SamplesLookAsTheSpecSays) {
  const auto samples = sequence_->samples(rows_);
  const DataSpec& spec = samples->spec();
  const std::int64_t count = samples->rows();
  ASSERT_GE(count, 4);

  const Batch batch = everything(*samples);

  std::set<std::string> names;
  ASSERT_EQ(batch.inputs.size(), spec.inputs.size());
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    EXPECT_TRUE(names.insert(spec.inputs[port].name).second) << spec.inputs[port].name;
    EXPECT_EQ(batch.inputs[port].sizes(), expected_sizes(count, spec.inputs[port].shape)) << port;
    EXPECT_EQ(batch.inputs[port].scalar_type(), spec.inputs[port].dtype) << port;
    const std::vector<Column>& columns = spec.inputs[port].columns;
    if (!columns.empty()) {
      EXPECT_EQ(spec.inputs[port].shape.back(), static_cast<std::int64_t>(columns.size()));
    }
  }
  ASSERT_EQ(batch.targets.size(), spec.targets.size());
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    EXPECT_EQ(batch.targets[i].sizes(), expected_sizes(count, spec.targets[i].shape)) << i;
    EXPECT_EQ(batch.targets[i].scalar_type() == at::kLong,
              spec.targets[i].kind == TargetKind::kClasses);
    EXPECT_TRUE(same(samples->targets(i), batch.targets[i])) << i;
  }
  EXPECT_EQ(batch.weights.defined(), spec.has_weights);
}

CLAIM(Sequence, StepsAreTheRowsThatSamplesAreMadeOf) {
  const auto samples = sequence_->samples(rows_);
  const RowReader* const steps = samples->steps();
  if (steps == nullptr)
    return;  // statistics are then those of samples
  ASSERT_EQ(steps->rows(), rows_.rows());
  ASSERT_EQ(steps->spec().inputs.size(), samples->spec().inputs.size());
  ASSERT_EQ(steps->spec().targets.size(), samples->spec().targets.size());
  const Batch all = everything(*samples);
  for (std::int64_t i = 0; i < samples->rows(); ++i) {
    const SourceRows source = samples->source_rows(i);
    Batch inputs;
    Batch targets;
    Batch first;
    steps->gather(row_numbers(source.inputs.begin, source.inputs.end), inputs);
    steps->gather(row_numbers(source.targets.begin, source.targets.end), targets);
    steps->gather(row_numbers(source.inputs.begin, source.inputs.begin + 1), first);
    for (std::size_t port = 0; port < all.inputs.size(); ++port) {
      // An input may also have the columns of the rows to predict that are known in advance, or
      // what is the same in all rows.
      const at::Tensor values = all.inputs[port][i].flatten();
      EXPECT_TRUE(same(inputs.inputs[port].flatten(), values) ||
                  same(targets.inputs[port].flatten(), values) ||
                  same(first.inputs[port].flatten(), values))
          << i << ", input " << port;
    }
    for (std::size_t target = 0; target < all.targets.size(); ++target)
      EXPECT_TRUE(same(targets.targets[target].flatten(), all.targets[target][i].flatten())) << i;
  }
}

CLAIM(Sequence, EvaluatesSomeOfTheSamplesItIsGivenInTheirOrder) {
  const auto samples = sequence_->samples(rows_);
  std::vector<std::int64_t> backwards;
  for (std::int64_t i = samples->rows() - 1; i >= 0; --i)
    backwards.push_back(i);
  for (const std::vector<std::int64_t>& given :
       {row_numbers(0, samples->rows()), row_numbers(1, 3), backwards, {}}) {
    const std::vector<std::int64_t> some = samples->evaluated(given).numbers();
    EXPECT_EQ(some.empty(), given.empty());
    std::vector<std::int64_t> in_order;
    std::copy_if(given.begin(), given.end(), std::back_inserter(in_order), [&](std::int64_t one) {
      return std::find(some.begin(), some.end(), one) != some.end();
    });
    EXPECT_EQ(some, in_order);
  }
}

CLAIM(Sequence, SamplesAreAFunctionOfTheRows) {
  const auto samples = sequence_->samples(rows_);
  const MatrixRows fewer(first_rows(series(), GetParam().rows));
  sequence_->samples(fewer);
  const auto again = sequence_->samples(rows_);
  const auto others = GetParam().make()->samples(rows_);

  for (const SampleReader* const other : {again.get(), others.get()}) {
    EXPECT_EQ(other->spec(), samples->spec());
    ASSERT_EQ(other->rows(), samples->rows());
    expect_same(everything(*other), everything(*samples));
    for (std::int64_t i = 0; i < samples->rows(); ++i) {
      EXPECT_EQ(other->source_rows(i).inputs, samples->source_rows(i).inputs) << i;
      EXPECT_EQ(other->source_rows(i).targets, samples->source_rows(i).targets) << i;
    }
  }
}

CLAIM(Sequence, GathersAnySamplesInAnyOrder) {
  const auto samples = sequence_->samples(rows_);
  const Batch whole = everything(*samples);
  const std::vector<std::int64_t> some = {samples->rows() - 1, 0, 2, 0};
  Batch batch;

  samples->gather(some, batch);

  for (std::size_t i = 0; i < some.size(); ++i) {
    const Batch one = batch.slice(static_cast<std::int64_t>(i), 1);
    const Batch expected = whole.slice(some[i], 1);
    expect_same(one.inputs, expected.inputs, "input");
    expect_same(one.targets, expected.targets, "target");
    EXPECT_TRUE(same(one.weights, expected.weights));
  }
  samples->gather({}, batch);
  EXPECT_EQ(batch.size(), 0);
}

CLAIM(Sequence, GathersIntoTheMemoryThatIsThere) {
  const auto samples = sequence_->samples(rows_);
  Batch batch = gathered(*samples, 0, 2);
  const void* const place = batch.inputs[0].data_ptr();

  samples->gather(row_numbers(1, 3), batch);

  EXPECT_EQ(batch.inputs[0].data_ptr(), place);
  expect_same(batch, gathered(*samples, 1, 3));
}

CLAIM(Sequence, BatchesBelongToTheirReader) {
  const auto samples = sequence_->samples(rows_);
  Batch batch = everything(*samples);
  const Batch before = copy_of(batch);
  for (at::Tensor& input : batch.inputs)
    input.zero_();
  for (at::Tensor& target : batch.targets)
    target.zero_();

  expect_same(everything(*samples), before);
}

CLAIM(Sequence, WhatBelongsToASampleHasOneValuePerSample) {
  const auto samples = sequence_->samples(rows_);
  const std::vector<std::int64_t> sizes = {samples->rows()};

  if (samples->groups().defined()) {
    EXPECT_EQ(samples->groups().sizes(), sizes);
    EXPECT_EQ(samples->groups().scalar_type(), at::kLong);
  }
  if (samples->timestamps().defined()) {
    EXPECT_EQ(samples->timestamps().sizes(), sizes);
    EXPECT_EQ(samples->timestamps().scalar_type(), at::kDouble);
  }
  std::set<std::string> places;
  for (std::int64_t i = 0; i < samples->rows(); ++i)
    EXPECT_TRUE(places.insert(samples->describe_row(i)).second) << samples->describe_row(i);
}

CLAIM(Sequence, SourceRowsLieInTheData) {
  const auto samples = sequence_->samples(rows_);
  for (std::int64_t i = 0; i < samples->rows(); ++i) {
    const SourceRows source = samples->source_rows(i);
    EXPECT_GE(source.inputs.begin, 0) << i;
    EXPECT_GT(source.inputs.size(), 0) << i;
    EXPECT_LE(source.inputs.end, rows_.rows()) << i;
    EXPECT_GE(source.targets.begin, 0) << i;
    EXPECT_GT(source.targets.size(), 0) << i;
    EXPECT_LE(source.targets.end, rows_.rows()) << i;
  }
}

// How a split proves that nothing leaks: it looks at the source rows alone.
CLAIM(Sequence, RunsAreTheSourceRowsOfAllSamples) {
  const auto samples = sequence_->samples(rows_);
  std::int64_t next = 0;
  for (const SampleRun& run : samples->runs()) {
    EXPECT_EQ(run.first, next);
    EXPECT_GE(run.count, 1);
    EXPECT_GE(run.step, 1);
    next = run.first + run.count;
    ASSERT_LE(next, samples->rows());
    for (std::int64_t i = 0; i < run.count; ++i) {
      const SourceRows own = samples->source_rows(run.first + i);
      const SourceRows by_run = run.rows.after(i * run.step);
      EXPECT_EQ(by_run.inputs, own.inputs) << run.first + i;
      EXPECT_EQ(by_run.targets, own.targets) << run.first + i;
    }
  }
  if (!samples->runs().empty()) {
    EXPECT_EQ(next, samples->rows());
  }
}

CLAIM(Sequence, WhatASampleReadsIsInItsSourceRows) {
  const auto samples = sequence_->samples(rows_);
  const std::int64_t count = samples->rows();
  for (const std::int64_t i : {std::int64_t{0}, count / 2, count - 1}) {
    const SourceRows source = samples->source_rows(i);
    const Batch before = gathered(*samples, i, i + 1);
    const auto changed = [&](bool but_targets) {
      Matrices other = copied(series());
      for (std::int64_t row = 0; row < rows_.rows(); ++row) {
        const bool is_input = row >= source.inputs.begin && row < source.inputs.end;
        const bool is_target = row >= source.targets.begin && row < source.targets.end;
        if (is_input || (but_targets && is_target))
          continue;
        other.inputs[0][row].add_(100);
        other.targets[0][row].add_(100);
        other.targets[1][row].mul_(-1).add_(1);
      }
      const MatrixRows rows(std::move(other));
      return gathered(*sequence_->samples(rows), i, i + 1);
    };
    const Batch inside = changed(true);
    expect_same(inside.inputs, before.inputs, "an input depends on rows it does not name: input");
    expect_same(inside.targets, before.targets, "it depends on rows it does not name: target");
    std::vector<at::Tensor> given = before.inputs;
    std::vector<at::Tensor> given_again = changed(false).inputs;
    if (GetParam().knows_future) {
      given.resize(1);
      given_again.resize(1);
    }
    expect_same(given_again, given, "it depends on the rows to predict: input");
  }
}

CLAIM(Sequence, ASampleLiesInOneGroup) {
  const auto samples = sequence_->samples(rows_);
  if (GetParam().joins_series) {
    expect_segments(*samples);
    return;
  }
  const auto group_of = [&](std::int64_t row) { return rows_.groups()[row].item<std::int64_t>(); };
  std::set<std::int64_t> groups;
  for (std::int64_t i = 0; i < samples->rows(); ++i) {
    const SourceRows source = samples->source_rows(i);
    const std::int64_t group = group_of(source.inputs.begin);
    groups.insert(group);
    for (const RowRange& rows : {source.inputs, source.targets}) {
      if (rows.size() < 1)
        continue;
      EXPECT_EQ(group_of(rows.begin), group) << i;
      EXPECT_EQ(group_of(rows.end - 1), group) << i;
    }
    if (samples->groups().defined()) {
      EXPECT_EQ(samples->groups()[i].item<std::int64_t>(), group) << i;
    }
  }
  EXPECT_EQ(groups.size(), 2U) << "a group has no samples";
}

CLAIM(Sequence, RowsWithoutTargetsGiveSamplesToPredictOn) {
  const MatrixRows bare(without_targets(series()));
  if (!GetParam().predicts) {
    EXPECT_NE(complaint_of(without_targets(series())), "") << "it has samples to predict on";
    return;
  }

  const auto samples = sequence_->samples(bare);

  EXPECT_TRUE(samples->spec().targets.empty());
  EXPECT_EQ(samples->spec().inputs, sequence_->samples(rows_)->spec().inputs);
  const Batch batch = everything(*samples);
  EXPECT_TRUE(batch.targets.empty());
  ASSERT_GE(samples->rows(), 2);
  EXPECT_GT(samples->source_rows(0).targets.size(), 0);
  // What is known last is what the next prediction is made from.
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < samples->rows(); ++i) {
    const SourceRows source = samples->source_rows(i);
    last = std::max(last, GetParam().knows_future ? source.targets.end : source.inputs.end);
  }
  EXPECT_EQ(last, bare.rows()) << "no sample ends with the last row";
}

CLAIM(Sequence, SaysHowManyRowsItNeeds) {
  for (std::int64_t rows = 1; rows <= 12; ++rows) {
    const MatrixRows few(first_rows(series(), rows));
    try {
      EXPECT_GE(sequence_->samples(few)->rows(), 1) << rows << " rows";
    } catch (const DataError& error) {
      EXPECT_STRNE(error.what(), "") << rows << " rows";
    }
  }
}

CLAIM(Sequence, RefusesRowsThatAreNotInTheOrderOfTime) {
  Matrices backwards = series();
  backwards.timestamps = backwards.timestamps.neg();
  Matrices torn = series();
  torn.groups = at::arange(rows_.rows(), at::kLong).remainder(2);
  torn.timestamps = at::Tensor();

  EXPECT_NE(complaint_of(std::move(backwards)), "") << "times fall";
  EXPECT_NE(complaint_of(std::move(torn)), "") << "two groups take turns";
}

CLAIM(Sequence, TakesRowsWithoutGroupsTimesAndWeights) {
  Matrices bare = series();
  bare.groups = bare.timestamps = bare.weights = at::Tensor();
  bare.spec.has_weights = false;
  const MatrixRows rows(std::move(bare));

  const auto samples = sequence_->samples(rows);

  EXPECT_GE(samples->rows(), sequence_->samples(rows_)->rows());
  EXPECT_FALSE(everything(*samples).weights.defined());
}

CLAIM(Sequence, SeveralThreadsMayGatherAtOnce) {
  const auto samples = sequence_->samples(rows_);
  const Batch expected = everything(*samples);
  constexpr std::size_t kThreads = 4;
  std::vector<Batch> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 20; ++repeat)
      samples->gather(row_numbers(0, samples->rows()), results[thread]);
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const Batch& result : results)
    expect_same(result, expected);
}

CLAIM(Sequence, DoesNotWriteToTheRows) {
  const MatrixRows untouched(series());
  const auto samples = sequence_->samples(rows_);

  everything(*samples);

  expect_same(gathered(rows_, 0, rows_.rows()), gathered(untouched, 0, rows_.rows()));
  EXPECT_TRUE(same(rows_.groups(), untouched.groups()));
  EXPECT_TRUE(same(rows_.timestamps(), untouched.timestamps()));
}

}  // namespace treadle::testing
