#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/abilities/fits_groups.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/transform_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_transforms {
namespace {

/// Subtracts the first column's mean, doubles targets. What a wrong one does otherwise it
/// overrides.
class Centre : public Transform {
 protected:
  virtual void shift(Batch& batch, const ApplyContext&) const {
    batch.inputs[0] = batch.inputs[0].clone();
    batch.inputs[0].select(1, 0).sub_(mean());
  }
  virtual double mean() const { return mean_; }
  virtual void set_mean(double mean) { mean_ = mean; }

  void do_fit(const RowReader& reader, const RowList& training_rows) override {
    Batch batch;
    reader.gather(training_rows.numbers(), batch);
    set_mean(batch.inputs[0].select(1, 0).mean().item<double>());
  }
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    shift(batch, context);
    double_targets(batch);
  }
  static void double_targets(Batch& batch) {
    if (batch.targets.empty())
      return;
    for (const std::size_t target : {0, 2})
      batch.targets[target] = batch.targets[target].mul(2);
  }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const override {
    return target == "kind" ? predictions : predictions.div(2);
  }
  StateDict do_state() const override {
    StateDict state;
    state.put_number("mean", mean());
    return state;
  }
  void do_load_state(const StateDict& state) override { set_mean(state.number("mean")); }

 private:
  double mean_ = 0;
};

class FitsOnAllRows final : public Centre {
  void do_fit(const RowReader& reader, const RowList&) override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(reader.rows()));
    std::iota(all.begin(), all.end(), 0);
    Centre::do_fit(reader, all);
  }
};

class PeeksAtOtherRows final : public Centre {
  void do_fit(const RowReader& reader, const RowList& training_rows) override {
    reader.targets(0);
    Centre::do_fit(reader, training_rows);
  }
};

class ForgetsItsState final : public Centre {
  void do_load_state(const StateDict& state) override { state.number("mean"); }
};

class TakesAnyState final : public Centre {
  void do_load_state(const StateDict& state) override {
    if (!state.empty())
      Centre::do_load_state(state);
  }
};

class InvertsNothing final : public Centre {
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view) const override {
    return predictions;
  }
};

class CentresEachBatch final : public Centre {
  void shift(Batch& batch, const ApplyContext&) const override {
    batch.inputs[0] = batch.inputs[0].clone();
    batch.inputs[0].select(1, 0).sub_(batch.inputs[0].select(1, 0).mean());
  }
};

class SharesItsMean final : public Centre {
  double mean() const override { return shared(); }
  void set_mean(double mean) override { shared() = mean; }
  static double& shared() {
    static double mean = 0;
    return mean;
  }
};

class AugmentsAlways final : public Centre {
  void shift(Batch& batch, const ApplyContext& context) const override {
    Centre::shift(batch, context);
    batch.inputs[0].select(1, 1).add_(static_cast<double>(context.seed));
  }
};

class NeedsTargets final : public Centre {
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    shift(batch, context);
    batch.targets.at(0);
    double_targets(batch);
  }
};

class NamesTwoColumnsAlike final : public Centre {
  DataSpec do_output_spec(const DataSpec& before) const override {
    DataSpec after = before;
    after.inputs[0].columns[1].name = after.inputs[0].columns[0].name;
    return after;
  }
};

class DeniesMissingValues final : public Centre {
  DataSpec do_output_spec(const DataSpec& before) const override {
    DataSpec after = before;
    after.inputs[0].columns[2].may_be_missing = false;
    return after;
  }
};

class MovesItsPadding final : public Centre {
  void shift(Batch& batch, const ApplyContext& context) const override {
    Centre::shift(batch, context);
    batch.inputs[2] = batch.inputs[2].sub(1);
  }
};

class AveragesOverPadding final : public Centre {
  void shift(Batch& batch, const ApplyContext& context) const override {
    Centre::shift(batch, context);
    batch.inputs[2] = batch.inputs[2].mul(static_cast<double>(batch.inputs[2].size(1)));
  }
};

class InvertsOneTargetOnly final : public Centre {
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const override {
    return target == "price" ? predictions.div(2) : predictions;
  }
};

class ChangesWeights final : public Centre {
  void shift(Batch& batch, const ApplyContext& context) const override {
    Centre::shift(batch, context);
    if (batch.weights.defined())
      batch.weights = batch.weights.mul(2);
  }
};

class SharesItsScratch final : public Centre {
  double mean() const override { return Centre::mean() + (thread_.is_mine() ? 0 : 1); }
  OneThread thread_;
};

class ChangesTargetsOnTheDevice final : public Centre {
  bool do_works_on_device() const override { return true; }
};

class ShiftsTwiceOnTheDevice final : public Centre {
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    shift(batch, context);
    if (context.tensors_only)
      shift(batch, context);
  }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view) const override {
    return predictions;
  }
  bool do_works_on_device() const override { return true; }
};

class MakesNumbersOfBytes final : public Centre {
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    Centre::do_apply(batch, context);
    batch.inputs.back() = batch.inputs.back().to(at::kFloat);
  }
  bool do_takes_bytes() const override { return true; }
};

/// Doubles targets of the groups it knows; the first column has one mean for all.
class ByGroup : public Centre, public FitsGroups {
 protected:
  virtual void expect_known(const at::Tensor& groups) const {
    if (!groups.defined())
      throw DataError("there are no groups");
    for (std::int64_t row = 0; row < groups.numel(); ++row) {
      if (!groups_.eq(groups[row]).any().item<bool>())
        throw DataError("there is no such group");
    }
  }

  void do_fit(const RowReader& reader, const RowList& training_rows) override {
    Centre::do_fit(reader, training_rows);
    Batch batch;
    reader.gather(training_rows.numbers(), batch);
    groups_ = std::get<0>(at::_unique(batch.groups));
  }
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    expect_known(batch.groups);
    Centre::do_apply(batch, context);
  }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == FitsGroups::kInterface ? static_cast<FitsGroups*>(this) : nullptr;
  }
  at::Tensor do_groups() const override { return groups_; }
  bool do_takes_other_groups() const override { return false; }
  at::Tensor do_invert_groups(const at::Tensor& predictions, std::string_view target,
                              const at::Tensor& groups) const override {
    expect_known(groups);
    return do_invert(predictions, target);
  }
  StateDict do_state() const override {
    StateDict state = Centre::do_state();
    state.put("groups", groups_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    Centre::do_load_state(state);
    groups_ = state.tensor("groups");
  }

 private:
  at::Tensor groups_;
};

class TakesAnyGroup final : public ByGroup {
  void expect_known(const at::Tensor& groups) const override {
    if (!groups.defined())
      throw DataError("there are no groups");
  }
};

class TakesRowsWithoutGroups final : public ByGroup {
  void expect_known(const at::Tensor& groups) const override {
    if (groups.defined())
      ByGroup::expect_known(groups);
  }
};

class NumbersItsGroupsAnew final : public ByGroup {
  at::Tensor do_groups() const override { return at::arange(3); }
};

template <typename T>
TransformCase one(std::string name, bool images = false) {
  return {std::move(name), [] { return std::make_unique<T>(); }, false, images};
}

std::vector<Wrong<TransformCase>> all() {
  return {
      {one<FitsOnAllRows>("FitsOnAllRows"),
       {"LearnsFromTheTrainingRowsOnly", "ReadsOnlyTheRowsItIsGiven"}},
      {one<PeeksAtOtherRows>("PeeksAtOtherRows"), {"ReadsOnlyTheRowsItIsGiven"}},
      {one<ForgetsItsState>("ForgetsItsState"), {"StateRoundTripGivesEqualBatches"}},
      {one<TakesAnyState>("TakesAnyState"), {"RefusesAnEmptyState"}},
      {one<InvertsNothing>("InvertsNothing"), {"InvertUndoesWhatApplyDidToTargets"}},
      {one<InvertsOneTargetOnly>("InvertsOneTargetOnly"), {"InvertUndoesWhatApplyDidToTargets"}},
      {one<MovesItsPadding>("MovesItsPadding"), {"PaddingIsZeroAndChangesNothing"}},
      {one<AveragesOverPadding>("AveragesOverPadding"), {"PaddingIsZeroAndChangesNothing"}},
      {one<CentresEachBatch>("CentresEachBatch"), {"DoesNotDependOnBatchBoundaries"}},
      {one<SharesItsMean>("SharesItsMean"), {"TwoObjectsKnowNothingOfEachOther"}},
      {one<AugmentsAlways>("AugmentsAlways"), {"OnlyTrainingIsAugmentedAndItsSeedDecidesHow"}},
      {one<NeedsTargets>("NeedsTargets"), {"WorksOnRowsWithoutTargets"}},
      {one<NamesTwoColumnsAlike>("NamesTwoColumnsAlike"), {"ColumnsHaveNamesOfTheirOwn"}},
      {one<DeniesMissingValues>("DeniesMissingValues"), {"BatchesLookAsTheOutputSpecSays"}},
      {one<SharesItsScratch>("SharesItsScratch"), {"AppliesFromSeveralThreadsAtOnce"}},
      {one<ChangesTargetsOnTheDevice>("ChangesTargetsOnTheDevice"),
       {"ADevicePartChangesInputsAlone"}},
      {one<ShiftsTwiceOnTheDevice>("ShiftsTwiceOnTheDevice"), {"TensorOperationsAgreeWithTheLoop"}},
      {one<MakesNumbersOfBytes>("MakesNumbersOfBytes", true),
       {"BatchesLookAsTheOutputSpecSays", "BytesStayBytesAndBecomeTheSameNumbers"}},
      {one<TakesAnyGroup>("TakesAnyGroup"), {"KnowsTheGroupsOfItsTrainingRowsByTheirNumbers"}},
      {one<TakesRowsWithoutGroups>("TakesRowsWithoutGroups"),
       {"KnowsTheGroupsOfItsTrainingRowsByTheirNumbers"}},
      {one<NumbersItsGroupsAnew>("NumbersItsGroupsAnew"),
       {"KnowsTheGroupsOfItsTrainingRowsByTheirNumbers"}},
      {one<ChangesWeights>("ChangesWeights"), {"LeavesOriginalTargetsRowsGroupsAndWeightsAlone"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, TransformContract,
                         ::testing::Values(one<Centre>("Centre"), one<ByGroup>("ByGroup"),
                                           one<Centre>("BesideImages", true)),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, TransformContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_transforms

std::vector<Defect> transform_defects() {
  return defects_of("TransformContract", wrong_transforms::all());
}

}  // namespace treadle::testing
