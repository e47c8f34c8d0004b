#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/randint.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/core/components/state_dict.h>
#include <treadle/testing/training/callback_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_callbacks {
namespace {

/// Halves the rate after the third epoch, stops after the fifth, and logs how often it was
/// called. What a wrong one does otherwise it overrides.
class Plain : public TrainingCallback {
 protected:
  virtual double factor() const { return 0.5; }
  virtual bool spares_refits() const { return true; }
  virtual std::vector<std::string> logged() const { return {"calls"}; }
  virtual bool keeps_state() const { return true; }

 private:
  std::vector<std::string> do_log_names() const override { return {"calls"}; }
  void do_after_epoch(const EpochSummary&, TrainingControl& control) override {
    ++calls_;
    for (const std::string& name : logged())
      control.log(name, static_cast<double>(calls_));
    if (calls_ == 3)
      control.multiply_rate(factor());
    if (calls_ == 5 && !(control.is_refit() && spares_refits()))
      control.stop("five epochs");
  }
  StateDict do_state() const override {
    StateDict state;
    if (keeps_state())
      state.put("calls", nlohmann::json(calls_));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    calls_ = state.value("calls").get<std::int64_t>();
  }

  std::int64_t calls_ = 0;
};

class Forgets final : public Plain {
  bool keeps_state() const override { return false; }
};

class ActsByChance final : public Plain {
  double factor() const override { return at::randint(1000, {1}).item<double>() / 1000; }
};

class StopsRefits final : public Plain {
  bool spares_refits() const override { return false; }
};

class LogsTwice final : public Plain {
  std::vector<std::string> logged() const override { return {"calls", "calls"}; }
};

class LogsNothing final : public Plain {
  std::vector<std::string> logged() const override { return {}; }
};

class WantsStepsLater final : public Plain {
  void do_begin(TrainingControl&) override { has_begun_ = true; }
  bool do_wants_steps() const override { return has_begun_; }
  bool has_begun_ = false;
};

class ChangesTheEnvironment final : public Plain {
  void do_begin(TrainingControl&) override {
    static int times = 0;
    setenv("WRONG_CALLBACK", std::to_string(++times).c_str(), 1);
  }
};

/// The first value is the best so far, whatever it is.
class KeepsWhatIsUndefined final : public Plain {
  void do_begin(TrainingControl& control) override {
    control.follow("val_loss");
    control.end_with_kept_weights("val_loss");
  }
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override {
    control.log("calls", 0);
    if (epoch.val_loss && !(*epoch.val_loss >= best_))
      control.keep_weights();
  }
  bool keeps_state() const override { return false; }
  double best_ = 0;
};

template <typename T>
CallbackCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

std::vector<Wrong<CallbackCase>> all() {
  return {
      {one<Forgets>("Forgets"),
       {"StopsAfterEveryStepChangeNothing", "EveryCheckpointLeadsToTheSameEnd"}},
      {one<ActsByChance>("ActsByChance"),
       {"TheSameInputsGiveTheSameBits", "StopsAfterEveryStepChangeNothing",
        "EveryCheckpointLeadsToTheSameEnd", "LeavesTheProcessAlone"}},
      {one<StopsRefits>("StopsRefits"), {"ARefitIsTrainedToItsLastEpochAndKeepsItsLastWeights"}},
      {one<LogsTwice>("LogsTwice"), {"EveryRowHasTheNumbersThatItLogs"}},
      {one<LogsNothing>("LogsNothing"), {"EveryRowHasTheNumbersThatItLogs"}},
      {one<WantsStepsLater>("WantsStepsLater"),
       {"WhatItLogsAndWantsIsAFunctionOfTheConfiguration"}},
      {one<KeepsWhatIsUndefined>("KeepsWhatIsUndefined"), {"UndefinedNumbersDecideNothing"}},
      {one<ChangesTheEnvironment>("ChangesTheEnvironment"), {"LeavesTheProcessAlone"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, CallbackContract, ::testing::Values(one<Plain>("Plain")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, CallbackContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_callbacks

std::vector<Defect> callback_defects() {
  return defects_of("CallbackContract", wrong_callbacks::all());
}

}  // namespace treadle::testing
