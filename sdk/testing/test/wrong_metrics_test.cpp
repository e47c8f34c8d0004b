#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>

#include <treadle/testing/metric_contract.h>

#include "wrong.h"

namespace treadle::testing {
namespace wrong_metrics {
namespace {

/// The weighted mean of absolute errors. What a wrong one does otherwise it overrides.
class MeanError : public MetricComputer {
 protected:
  void do_start(const TargetSpec& target) override {
    if (target.kind != TargetKind::kNumbers)
      throw DataError("mean_error needs numbers");
  }
  void do_reset() override { sum_ = weight_ = 0; }
  void do_update(const Predictions& predictions, const Batch& batch) override {
    add(predictions.values, batch.original_targets, batch.weights);
  }
  void do_merge(const MetricComputer& other) override {
    sum_ += static_cast<const MeanError&>(other).sum_;
    weight_ += static_cast<const MeanError&>(other).weight_;
  }
  MetricResult do_compute() const override {
    return {{{"mean_error", sum_ / weight_, Direction::kLowerIsBetter}}, {}};
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
    const at::Tensor errors = values.sub(targets).abs().sum(1);
    sum_ += (weights.defined() ? errors.mul(weights) : errors).sum().item<double>();
    weight_ +=
        weights.defined() ? weights.sum().item<double>() : static_cast<double>(values.size(0));
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

class JudgesByTransformedTargets final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    add(predictions.values, batch.targets, batch.weights);
  }
};

class IgnoresWeights final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    add(predictions.values, batch.original_targets, {});
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
    return {{{weight_ == 0 ? "nothing" : "mean_error", sum_ / weight_}}, {}};
  }
};

class TakesAnyTarget final : public MeanError {
  void do_start(const TargetSpec&) override {}
};

class FailsWithoutRows final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    if (batch.size() == 0)
      throw DataError("no rows");
    MeanError::do_update(predictions, batch);
  }
};

/// Looks at its batches only when asked.
class Lazy final : public MeanError {
  void do_reset() override {
    MeanError::do_reset();
    seen_.clear();
  }
  void do_update(const Predictions& predictions, const Batch& batch) override {
    seen_.push_back({predictions, batch});
  }
  void do_merge(const MetricComputer& other) override {
    const auto& more = static_cast<const Lazy&>(other).seen_;
    seen_.insert(seen_.end(), more.begin(), more.end());
  }
  MetricResult do_compute() const override { return judged()->MeanError::do_compute(); }
  StateDict do_state() const override { return judged()->MeanError::do_state(); }

  std::unique_ptr<Lazy> judged() const {
    auto judged = std::make_unique<Lazy>();
    judged->sum_ = sum_;
    judged->weight_ = weight_;
    for (const JudgedRows& rows : seen_)
      judged->add(rows.predictions.values, rows.batch.original_targets, rows.batch.weights);
    return judged;
  }
  std::vector<JudgedRows> seen_;
};

/// Counts the first row it sees twice.
class PrefersTheFirstRow final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    MeanError::do_update(predictions, batch);
    if (batch.size() > 0 && batch.rows[0].item<std::int64_t>() == 0) {
      add(predictions.values.slice(0, 0, 1), batch.original_targets.slice(0, 0, 1),
          batch.weights.defined() ? batch.weights.slice(0, 0, 1) : at::Tensor());
    }
  }
};

/// The mean over batches of their means.
class AveragesBatches final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    const double weight = std::exchange(weight_, 0);
    const double sum = std::exchange(sum_, 0);
    MeanError::do_update(predictions, batch);
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
  void do_update(const Predictions& predictions, const Batch& batch) override {
    if (!asked_)
      MeanError::do_update(predictions, batch);
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
  void do_update(const Predictions& predictions, const Batch& batch) override {
    const double sum = std::exchange(sum_, 0);
    MeanError::do_update(predictions, batch);
    sum_ = sum + sum_ * (batch.weights.defined() ? 2 : 1);
  }
};

class GivesNothing final : public MeanError {
  MetricResult do_compute() const override { return {}; }
};

class CutsToWholeNumbers final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    add(predictions.values.scalar_type() == at::kFloat ? predictions.values.round()
                                                       : predictions.values,
        batch.original_targets, batch.weights);
  }
};

/// All objects share one sum.
class SharesItsSum final : public MeanError {
  void do_update(const Predictions& predictions, const Batch& batch) override {
    const MetricComputer* last = std::exchange(last_of_all(), this);
    if (weight_ > 0 && last != this && !resumed_)
      sum_ += 1;
    MeanError::do_update(predictions, batch);
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
  return {std::move(name), [] { return std::make_unique<T>(); }, MetricCase::numbers(2)};
}

std::vector<Wrong<MetricCase>> all() {
  return {{one<DropsAPartOnMerge>("DropsAPartOnMerge"), {"MergingTwoWorkersEqualsOneSeeingBoth"}},
          {one<MergesOnce>("MergesOnce"), {"MergingManyWorkersInAnyGroupingIsTheSame"}},
          {one<NeverForgets>("NeverForgets"), {"ForgetsEverythingOnReset"}},
          {one<JudgesByTransformedTargets>("JudgesByTransformedTargets"),
           {"JudgesByTheTargetsAsTheDataGaveThem"}},
          {one<IgnoresWeights>("IgnoresWeights"),
           {"WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow", "RowsOfWeightZeroAreNoRows"}},
          {one<SaysZeroForNothing>("SaysZeroForNothing"),
           {"ReportsNaNBeforeTheFirstBatch", "ABatchWithoutRowsChangesNothing",
            "RowsOfWeightZeroAreNoRows"}},
          {one<ForgetsHalfItsState>("ForgetsHalfItsState"), {"StateRoundTripContinuesBitwise"}},
          {one<ChangesItsName>("ChangesItsName"), {"ItsNamesAreTheSameFromTheFirstBatchToTheLast"}},
          {one<AveragesBatches>("AveragesBatches"),
           {"DoesNotDependOnBatchBoundaries", "MergingTwoWorkersEqualsOneSeeingBoth",
            "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
          {one<HalvesOnMerge>("HalvesOnMergingNothing"),
           {"MergingWithAWorkerThatSawNothingChangesNothing"}},
          {one<EndsWhenAsked>("EndsWhenAsked"), {"ComputingInBetweenChangesNothing"}},
          {one<DoublesWeightedRows>("DoublesWeightedRows"),
           {"WeightsOfOneChangeNothing", "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
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
