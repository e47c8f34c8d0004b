#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/training/training_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_trainings {
namespace {

/// The usual loop. What a wrong one does otherwise it overrides.
class Plain : public TrainingWorkflow {
 protected:
  virtual double rate(const TrainingSession& session) { return session.scheduled_rate(); }
  virtual void after_epoch(TrainingSession&) {}

  void train_all(TrainingSession& session) {
    while (session.next_epoch()) {
      while (session.step(rate(session))) {
      }
      session.finish_epoch();
      after_epoch(session);
    }
  }

 private:
  void do_train(TrainingSession& session) override { train_all(session); }
};

class TrainsOneEpoch final : public TrainingWorkflow {
  void do_train(TrainingSession& session) override {
    if (!session.next_epoch())
      return;
    while (session.step(session.scheduled_rate())) {
    }
    session.finish_epoch();
  }
};

class TakesAStepTooMany final : public TrainingWorkflow {
  void do_train(TrainingSession& session) override {
    do {
      session.next_epoch();
      while (session.step(session.scheduled_rate())) {
      }
      session.finish_epoch();
    } while (!session.is_finished());
  }
};

class StopsAsItLikes final : public Plain {
  void after_epoch(TrainingSession& session) override {
    if (session.epochs_done() == 2)
      session.stop("enough");
  }
};

class NeverLearns final : public Plain {
  double rate(const TrainingSession&) override { return 0; }
};

class RatesByChance final : public Plain {
  double rate(const TrainingSession& session) override {
    return session.scheduled_rate() * (1 + at::randint(1000, {1}).item<double>() / 1000) / 2;
  }
};

/// Halves its rate from the sixth of its own steps on, and forgets which it is at.
class ForgetsItsSteps final : public Plain {
  double rate(const TrainingSession& session) override {
    return session.scheduled_rate() * (++steps_ > 5 ? 0.5 : 1.0);
  }
  int steps_ = 0;
};

class SwallowsErrors final : public Plain {
  void do_train(TrainingSession& session) override {
    try {
      train_all(session);
    } catch (const Error&) {
      // Too bad.
    }
  }
};

template <typename T>
TrainingCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

std::vector<Wrong<TrainingCase>> all() {
  return {{one<TrainsOneEpoch>("TrainsOneEpoch"),
           {"TrainsThePlannedEpochs", "ARefitIsTrainedToItsLastEpoch", "TheLossGoesDown",
            "TheSameInputsGiveTheSameBits", "StopsAfterEveryStepChangeNothing",
            "EveryCheckpointLeadsToTheSameEnd", "AStopBetweenTwoEpochsIsSaved",
            "AFinishedTrainingIsNotTrainedAgain", "WhatTheSessionThrowsPasses"}},
          {one<TakesAStepTooMany>("TakesAStepTooMany"),
           {"EveryCheckpointLeadsToTheSameEnd", "AFinishedTrainingIsNotTrainedAgain"}},
          {one<StopsAsItLikes>("StopsAsItLikes"),
           {"TrainsThePlannedEpochs", "ARefitIsTrainedToItsLastEpoch", "TheLossGoesDown"}},
          {one<NeverLearns>("NeverLearns"), {"TheLossGoesDown"}},
          {one<RatesByChance>("RatesByChance"),
           {"TheSameInputsGiveTheSameBits", "StopsAfterEveryStepChangeNothing",
            "EveryCheckpointLeadsToTheSameEnd"}},
          {one<ForgetsItsSteps>("ForgetsItsSteps"),
           {"StopsAfterEveryStepChangeNothing", "EveryCheckpointLeadsToTheSameEnd"}},
          {one<SwallowsErrors>("SwallowsErrors"),
           {"StopsAfterEveryStepChangeNothing", "AStopCostsNoMoreThanAStep",
            "AStopBetweenTwoEpochsIsSaved", "WhatTheSessionThrowsPasses"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, TrainingContract, ::testing::Values(one<Plain>("Plain")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, TrainingContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_trainings

std::vector<Defect> training_defects() {
  return defects_of("TrainingContract", wrong_trainings::all());
}

}  // namespace treadle::testing
