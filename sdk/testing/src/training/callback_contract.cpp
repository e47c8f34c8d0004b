#include <treadle/testing/training/callback_contract.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/core/training/training_callback.h>
#include <treadle/tensor/process_state.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/whole_training.h>
#include <treadle/testing/training/recording_control.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class CallbackClaims : public ::testing::WithParamInterface<CallbackCase> {
 protected:
  static std::unique_ptr<Rehearsal> rehearsal(Rehearsed rehearsed = {}) {
    if (rehearsed.epochs == Rehearsed().epochs)
      rehearsed.epochs = 10;
    Rehearsal::Callbacks callbacks;
    callbacks.push_back(GetParam().make());
    return std::make_unique<Rehearsal>(rehearsed, std::move(callbacks));
  }

  static std::vector<Rehearsed> possible_situations() {
    std::vector<Rehearsed> all = situations();
    all.push_back({.evaluate_every = 2});
    if (GetParam().needs_validation) {
      std::erase_if(all, [](const Rehearsed& one) { return !one.has_validation && !one.is_refit; });
    }
    return all;
  }
};

}  // namespace

LINKS_CLAIMS_OF(Callback)

CLAIM(Callback, WhatItLogsAndWantsIsAFunctionOfTheConfiguration) {
  const auto fresh = GetParam().make();
  const Whole used(rehearsal());
  const TrainingCallback& callback = *used.rehearsal->setup().callbacks.front();

  EXPECT_EQ(fresh->log_names(), callback.log_names());
  EXPECT_EQ(fresh->wants_steps(), callback.wants_steps());
}

CLAIM(Callback, EveryRowHasTheNumbersThatItLogs) {
  const Whole whole(rehearsal());

  const std::vector<std::string> names = GetParam().make()->log_names();
  for (const EpochSummary& row : whole.context.epochs()) {
    for (const std::string& name : names) {
      const auto count =
          std::count_if(row.logged.begin(), row.logged.end(),
                        [&](const MetricValue& value) { return value.name == name; });
      EXPECT_EQ(count, 1) << name << " in epoch " << row.epoch;
    }
  }
}

CLAIM(Callback, TheSameInputsGiveTheSameBits) {
  for (const Rehearsed& rehearsed : possible_situations()) {
    const Whole one(rehearsal(rehearsed));
    at::randn({7});  // what libtorch's own generator has drawn does not matter
    const Whole other(rehearsal(rehearsed));

    expect_same_result(other.result, one.result);
    expect_same_history(other.context.epochs(), one.context.epochs());
    EXPECT_TRUE(same_bits(other.rehearsal->weights(), one.rehearsal->weights()));
  }
}

CLAIM(Callback, StopsAfterEveryStepChangeNothing) {
  for (const Rehearsed& rehearsed : possible_situations())
    expect_stops_after_every_step_change_nothing([&] { return rehearsal(rehearsed); });
}

CLAIM(Callback, EveryCheckpointLeadsToTheSameEnd) {
  for (const Rehearsed& rehearsed : possible_situations())
    expect_every_checkpoint_leads_to_the_same_end([&] { return rehearsal(rehearsed); });
}

CLAIM(Callback, ARefitIsTrainedToItsLastEpochAndKeepsItsLastWeights) {
  const Whole whole(rehearsal({.epochs = 6, .is_refit = true, .has_validation = false}));

  EXPECT_EQ(whole.result.total_epochs, 6);
  EXPECT_EQ(whole.result.stop_reason, "");
  EXPECT_FALSE(whole.result.selects_best);
}

/// Those it follows, that is: what it does after so many epochs it does all the same.
CLAIM(Callback, UndefinedNumbersDecideNothing) {
  const Whole whole(rehearsal());
  EpochSummary row = whole.context.epochs().front();
  RecordingControl control;
  control.planned_epochs = 100;
  control.names = {"train_loss", "learning_rate", "val_loss"};
  const Number undefined = Number::undefined("there are no such rows");
  row.train_loss = undefined;
  row.val_loss = undefined;
  for (std::vector<MetricValue>* values : {&row.metrics, &row.logged}) {
    for (MetricValue& value : *values) {
      value.value = undefined;
      control.names.push_back(value.name);
    }
  }
  const auto callback = GetParam().make();
  callback->begin(control);
  if (control.followed.empty())
    return;

  for (int epoch = 0; epoch < 50; ++epoch)
    control.after_epoch(*callback, row);

  EXPECT_EQ(control.stop_reason, "");
  EXPECT_EQ(control.kept, 0);
  EXPECT_EQ(control.factor, 1);
  EXPECT_TRUE(control.changes.empty()) << control.changes.front();
}

CLAIM(Callback, RefusesATrainingOnlyBeforeItsFirstStep) {
  const auto without = rehearsal({.has_validation = false});
  RecordingContext context;
  try {
    without->train(context);
    EXPECT_FALSE(GetParam().needs_validation) << "it trains without validation rows";
  } catch (const DocumentError&) {
    EXPECT_TRUE(GetParam().needs_validation);
    EXPECT_TRUE(context.steps().empty());
  }
}

CLAIM(Callback, LeavesTheProcessAlone) {
  const ProcessState before = ProcessState::now();

  const Whole whole(rehearsal());

  for (const std::string& change : before.changes_until(ProcessState::now()))
    ADD_FAILURE() << change;
}

}  // namespace treadle::testing
