#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/model/output_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_outputs {
namespace {

/// Half the probability, half the share of the class among held-out rows. A wrong one overrides a
/// part.
class Shares : public OutputStage {
 protected:
  void do_start(const TargetSpec& target) override {
    if (target.kind != TargetKind::kClasses)
      throw DataError("shares needs classes");
    shares_ = at::zeros({target.class_count()}, at::kDouble);
  }
  void do_fit(const Prediction& /*prediction*/, const TargetBatch& target) override {
    learn(target.values().reshape(-1), target.weights().defined()
                                           ? target.weights().reshape(-1).to(at::kDouble)
                                           : at::ones_like(target.values(), at::kDouble).flatten());
  }
  Prediction do_apply(Prediction prediction, const Batch& /*rows*/) const override {
    prediction.values = mixed(prediction.values).to(prediction.values.scalar_type());
    prediction.logits = at::Tensor();
    return prediction;
  }
  std::vector<MetricValue> do_learned() const override {
    return {{"first", shares_[0].item<double>()}};
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("shares", shares_);
    return state;
  }
  void do_load_state(const StateDict& state) override {
    if (state.tensor("shares").sizes() != shares_.sizes())
      throw StorageError("other classes");
    shares_ = state.tensor("shares");
  }

  void learn(const at::Tensor& classes, const at::Tensor& weights) {
    const at::Tensor counts = at::bincount(classes, weights, shares_.size(0));
    shares_ = counts / counts.sum();
  }
  at::Tensor mixed(const at::Tensor& values) const {
    return (values.to(at::kDouble) + shares_) / 2;
  }

  at::Tensor shares_;
};

class Widens final : public Shares {
  Prediction do_apply(Prediction prediction, const Batch& rows) const override {
    prediction = Shares::do_apply(std::move(prediction), rows);
    prediction.values = prediction.values.to(at::kDouble);
    return prediction;
  }
};

class Adds final : public Shares {
  Prediction do_apply(Prediction prediction, const Batch& rows) const override {
    prediction = Shares::do_apply(std::move(prediction), rows);
    prediction.values = prediction.values * 1.5;
    return prediction;
  }
};

class MixesWithTheBatch final : public Shares {
  Prediction do_apply(Prediction prediction, const Batch& /*rows*/) const override {
    const at::Tensor mean = prediction.values.flatten(0, -2).mean(0);
    prediction.values = ((prediction.values + mean) / 2).to(prediction.values.scalar_type());
    prediction.logits = at::Tensor();
    return prediction;
  }
};

class WritesInPlace final : public Shares {
  Prediction do_apply(Prediction prediction, const Batch& /*rows*/) const override {
    prediction.values.copy_(mixed(prediction.values));
    prediction.logits = at::Tensor();
    return prediction;
  }
};

class HasNoState final : public Shares {
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict& /*state*/) override {}
};

class TakesAnyState final : public Shares {
  void do_load_state(const StateDict& state) override { shares_ = state.tensor("shares"); }
};

class LearnsOfTheFirstHalf final : public Shares {
  void do_fit(const Prediction& /*prediction*/, const TargetBatch& target) override {
    const at::Tensor classes = target.values().reshape(-1);
    const at::Tensor weights = target.weights().defined()
                                   ? target.weights().reshape(-1).to(at::kDouble)
                                   : at::ones_like(classes, at::kDouble);
    const std::int64_t half = classes.numel() / 2;
    learn(classes.slice(0, 0, half), weights.slice(0, 0, half));
  }
};

class CountsPadding final : public Shares {
  void do_fit(const Prediction& /*prediction*/, const TargetBatch& target) override {
    const at::Tensor classes = target.values().reshape(-1);
    learn(classes, at::ones_like(classes, at::kDouble));
  }
};

class ForOneThread final : public Shares {
  Prediction do_apply(Prediction prediction, const Batch& rows) const override {
    prediction = Shares::do_apply(std::move(prediction), rows);
    if (!thread_.is_mine())
      prediction.values = prediction.values * 0;
    return prediction;
  }

  OneThread thread_;
};

class RefusesWithoutAWord final : public Shares {
  void do_start(const TargetSpec& target) override {
    if (target.kind != TargetKind::kClasses)
      throw DataError("");
    Shares::do_start(target);
  }
};

template <typename Stage>
OutputCase stage(std::string name) {
  return {std::move(name), [] { return std::make_unique<Stage>(); }, class_target(3, {kVaries})};
}

std::vector<Wrong<OutputCase>> all() {
  return {{stage<Widens>("Widens"), {"KeepsTheShapeAndTheDtype"}},
          {stage<Adds>("Adds"), {"ProbabilitiesStayProbabilities"}},
          {stage<MixesWithTheBatch>("MixesWithTheBatch"), {"ChangesEachRowByItself"}},
          {stage<WritesInPlace>("WritesInPlace"), {"DoesNotWriteToWhatItIsGiven"}},
          {stage<HasNoState>("HasNoState"), {"GoesOnFromItsState"}},
          {stage<TakesAnyState>("TakesAnyState"), {"RefusesTheStateOfSomethingElse"}},
          {stage<LearnsOfTheFirstHalf>("LearnsOfTheFirstHalf"), {"DoesNotDependOnTheOrderOfRows"}},
          {stage<CountsPadding>("CountsPadding"), {"LearnsNothingFromPadding"}},
          {stage<ForOneThread>("ForOneThread"), {"IsAppliedBySeveralThreadsAtOnce"}},
          {stage<RefusesWithoutAWord>("RefusesWithoutAWord"), {"RefusesATargetItHasNoMeaningFor"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, OutputContract, ::testing::Values(stage<Shares>("Shares")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, OutputContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_outputs

std::vector<Defect> output_defects() {
  return defects_of("OutputContract", wrong_outputs::all());
}

}  // namespace treadle::testing
