#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/support/evaluated_rows.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_metrics {
namespace {

TargetSpec spec() {
  return MetricCase::numbers(2, {kVaries});
}

/// The weighted mean of absolute errors. What a wrong one does otherwise it overrides.
class MeanError : public MetricComputer {
 protected:
  void do_start(const TargetSpec& target) override {
    if (target.kind != TargetKind::kNumbers)
      throw DataError("mean_error needs numbers");
  }
  void do_reset() override { sum_ = weight_ = 0; }
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const at::Tensor& weights = target.weights();
    if (!weights.defined())
      return add(prediction.values, target.values(), weights);
    // Padding may hold anything.
    const at::Tensor counted = weights.gt(0);
    add(prediction.values.flatten(0, -2).index({counted.flatten()}),
        target.values().flatten(0, -2).index({counted.flatten()}), weights.index({counted}));
  }
  void do_merge(const MetricComputer& other) override {
    sum_ += static_cast<const MeanError&>(other).sum_;
    weight_ += static_cast<const MeanError&>(other).weight_;
  }
  MetricResult do_compute() const override {
    return {{{"mean_error", weighted_mean(sum_, weight_), Direction::kLowerIsBetter}}, {}};
  }
  StateDict do_state() const override {
    StateDict state;
    state.put_number("sum", sum_);
    state.put_number("weight", weight_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    sum_ = state.number("sum");
    weight_ = state.number("weight");
  }

  void add(const at::Tensor& values, const at::Tensor& targets, const at::Tensor& weights) {
    const at::Tensor errors = values.sub(targets).abs().sum(-1);
    sum_ += (weights.defined() ? errors.mul(weights) : errors).sum().item<double>();
    weight_ +=
        weights.defined() ? weights.sum().item<double>() : static_cast<double>(errors.numel());
  }

  double sum_ = 0;
  double weight_ = 0;
};

class DropsAPartOnMerge final : public MeanError {
  void do_merge(const MetricComputer& other) override {
    if (weight_ == 0)
      MeanError::do_merge(other);
  }
};

class MergesOnce final : public MeanError {
  void do_merge(const MetricComputer& other) override {
    if (!std::exchange(merged_, static_cast<const MergesOnce&>(other).weight_ > 0))
      MeanError::do_merge(other);
  }
  bool merged_ = false;
};

class NeverForgets final : public MeanError {
  void do_reset() override {}
};

class UsesTransformedTargets final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    MeanError::do_update(prediction, TargetBatch::transformed(target.batch(), 0, spec()));
  }
};

class IgnoresWeights final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    add(prediction.values, target.values(), {});
  }
};

/// Looks at the weights of rows only.
class CountsPadding final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const at::Tensor& rows = target.batch().weights;
    add(prediction.values, target.values(),
        rows.defined() ? rows.unsqueeze(1).expand(prediction.values.sizes().slice(0, 2))
                       : at::Tensor());
  }
};

/// NaN times 0 is NaN.
class MultipliesPaddingByZero final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    add(prediction.values, target.values(), target.weights());
  }
};

/// Takes the longest row for the length of all.
class SumsOverThePaddedLength final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const double sum = std::exchange(sum_, 0);
    MeanError::do_update(prediction, target);
    sum_ = sum + sum_ * static_cast<double>(prediction.values.size(1));
  }
};

class SaysZeroForNothing final : public MeanError {
  MetricResult do_compute() const override {
    return {{{"mean_error", weight_ == 0 ? 0 : sum_ / weight_}}, {}};
  }
};

class ForgetsHalfItsState final : public MeanError {
  StateDict do_state() const override {
    StateDict state = MeanError::do_state();
    state.put_number("weight", 0);
    return state;
  }
};

class ChangesItsName final : public MeanError {
  MetricResult do_compute() const override {
    return {{{weight_ == 0 ? "nothing" : "mean_error", weighted_mean(sum_, weight_)}}, {}};
  }
};

class LosesItsValue final : public MeanError {
  MetricResult do_compute() const override {
    return {{{"mean_error", weight_ > 5 && weight_ < 12 ? Number::undefined("no luck")
                                                        : weighted_mean(sum_, weight_)}},
            {}};
  }
};

class TakesAnyTarget final : public MeanError {
  void do_start(const TargetSpec&) override {}
};

class FailsWithoutRows final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    if (target.rows() == 0)
      throw DataError("no rows");
    MeanError::do_update(prediction, target);
  }
};

/// Looks at its batches only when asked.
class Lazy final : public MeanError {
  void do_reset() override {
    MeanError::do_reset();
    seen_.clear();
  }
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    seen_.push_back({prediction, target.batch()});
  }
  void do_merge(const MetricComputer& other) override {
    const auto& more = static_cast<const Lazy&>(other).seen_;
    seen_.insert(seen_.end(), more.begin(), more.end());
  }
  MetricResult do_compute() const override { return computed()->MeanError::do_compute(); }
  StateDict do_state() const override { return computed()->MeanError::do_state(); }

  std::unique_ptr<Lazy> computed() const {
    auto computed = std::make_unique<Lazy>();
    computed->sum_ = sum_;
    computed->weight_ = weight_;
    for (const EvaluatedRows& rows : seen_)
      computed->MeanError::do_update(rows.prediction, TargetBatch::original(rows.batch, 0, spec()));
    return computed;
  }
  std::vector<EvaluatedRows> seen_;
};

/// Counts the first row it sees twice.
class PrefersTheFirstRow final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    MeanError::do_update(prediction, target);
    if (target.rows() == 0 || target.batch().rows[0].item<std::int64_t>() != 0)
      return;
    const Batch first = target.batch().slice(0, 1);
    MeanError::do_update({prediction.kind, prediction.values.slice(0, 0, 1)},
                         TargetBatch::original(first, 0, spec()));
  }
};

/// The mean over batches of their means.
class AveragesBatches final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const double weight = std::exchange(weight_, 0);
    const double sum = std::exchange(sum_, 0);
    MeanError::do_update(prediction, target);
    sum_ = sum + (weight_ > 0 ? sum_ / weight_ : 0);
    weight_ = weight + (weight_ > 0 ? 1 : 0);
  }
};

class HalvesOnMerge final : public MeanError {
  void do_merge(const MetricComputer& other) override {
    MeanError::do_merge(other);
    if (static_cast<const HalvesOnMerge&>(other).weight_ == 0)
      sum_ /= 2;
  }
};

class EndsWhenAsked final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    if (!asked_)
      MeanError::do_update(prediction, target);
  }
  MetricResult do_compute() const override {
    asked_ = weight_ > 0;
    return MeanError::do_compute();
  }
  void do_reset() override {
    MeanError::do_reset();
    asked_ = false;
  }
  mutable bool asked_ = false;
};

class DoublesWeightedRows final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const double sum = std::exchange(sum_, 0);
    MeanError::do_update(prediction, target);
    sum_ = sum + sum_ * (target.weights().defined() ? 2 : 1);
  }
};

class GivesNothing final : public MeanError {
  MetricResult do_compute() const override { return {}; }
};

class CutsToWholeNumbers final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const at::Tensor& values = prediction.values;
    MeanError::do_update(
        {prediction.kind, values.scalar_type() == at::kFloat ? values.round() : values}, target);
  }
};

/// All objects share one sum.
class SharesItsSum final : public MeanError {
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    const MetricComputer* last = std::exchange(last_of_all(), this);
    if (weight_ > 0 && last != this && !resumed_)
      sum_ += 1;
    MeanError::do_update(prediction, target);
  }
  void do_load_state(const StateDict& state) override {
    MeanError::do_load_state(state);
    resumed_ = true;
  }
  static const MetricComputer*& last_of_all() {
    static const MetricComputer* last = nullptr;
    return last;
  }
  bool resumed_ = false;
};

template <typename T>
MetricCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }, spec()};
}

std::vector<Wrong<MetricCase>> all() {
  return {
      {one<DropsAPartOnMerge>("DropsAPartOnMerge"), {"MergingTwoWorkersEqualsOneSeeingBoth"}},
      {one<MergesOnce>("MergesOnce"), {"MergingManyWorkersInAnyGroupingIsTheSame"}},
      {one<NeverForgets>("NeverForgets"), {"ForgetsEverythingOnReset"}},
      {one<UsesTransformedTargets>("UsesTransformedTargets"), {"UsesTheTargetsAsTheDataGaveThem"}},
      {one<IgnoresWeights>("IgnoresWeights"),
       {"WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow", "RowsOfWeightZeroAreNoRows",
        "PaddingChangesNothing", "NaNInPaddingChangesNothing",
        "APaddedBatchEqualsItsRowsOneByOne"}},
      {one<CountsPadding>("CountsPadding"),
       {"PaddingChangesNothing", "NaNInPaddingChangesNothing",
        "APaddedBatchEqualsItsRowsOneByOne"}},
      {one<MultipliesPaddingByZero>("MultipliesPaddingByZero"), {"NaNInPaddingChangesNothing"}},
      {one<SumsOverThePaddedLength>("SumsOverThePaddedLength"),
       {"APaddedBatchEqualsItsRowsOneByOne"}},
      {one<SaysZeroForNothing>("SaysZeroForNothing"),
       {"IsUndefinedBeforeTheFirstBatch", "ABatchWithoutRowsChangesNothing",
        "RowsOfWeightZeroAreNoRows"}},
      {one<LosesItsValue>("LosesItsValue"), {"MoreRowsNeverMakeAValueUndefined"}},
      {one<ForgetsHalfItsState>("ForgetsHalfItsState"), {"StateRoundTripContinuesBitwise"}},
      {one<ChangesItsName>("ChangesItsName"), {"ItsNamesAreTheSameFromTheFirstBatchToTheLast"}},
      {one<AveragesBatches>("AveragesBatches"),
       {"DoesNotDependOnBatchBoundaries", "MergingTwoWorkersEqualsOneSeeingBoth",
        "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow", "APaddedBatchEqualsItsRowsOneByOne"}},
      {one<HalvesOnMerge>("HalvesOnMergingNothing"),
       {"MergingWithAWorkerThatSawNothingChangesNothing"}},
      {one<EndsWhenAsked>("EndsWhenAsked"), {"ComputingInBetweenChangesNothing"}},
      {one<DoublesWeightedRows>("DoublesWeightedRows"),
       {"WeightsOfOneChangeNothing", "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow",
        "APaddedBatchEqualsItsRowsOneByOne"}},
      {one<GivesNothing>("GivesNothing"), {"GivesAValueOrATable"}},
      {one<CutsToWholeNumbers>("CutsToWholeNumbers"), {"TakesSinglePrecision"}},
      {one<SharesItsSum>("SharesItsSum"), {"TwoObjectsKnowNothingOfEachOther"}},
      {one<TakesAnyTarget>("TakesAnyTarget"), {"RefusesTheOtherKindOfTarget"}},
      {one<FailsWithoutRows>("FailsWithoutRows"), {"ABatchWithoutRowsChangesNothing"}},
      {one<Lazy>("KeepsTheCallersTensors"), {"DoesNotKeepTheCallersTensors"}},
      {one<PrefersTheFirstRow>("PrefersTheFirstRow"),
       {"DoesNotDependOnTheOrderOfRowsUnlessItSaysSo"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, MetricContract, ::testing::Values(one<MeanError>("MeanError")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, MetricContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_metrics

std::vector<Defect> metric_defects() {
  return defects_of("MetricContract", wrong_metrics::all());
}

}  // namespace treadle::testing
