#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <treadle/testing/training/optimizer_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_optimizers {
namespace {

/// Gradient descent with momentum. What a wrong one does otherwise it overrides.
class Momentum : public Optimizer {
 protected:
  virtual void move(const ParameterPiece& layer, ParameterView& view) const {
    move(layer, view, 0.5 * layer.slot(0) + layer.gradients());
  }
  static void move(const ParameterPiece& layer, ParameterView& view, const at::Tensor& momentum) {
    layer.set_slot(0, momentum);
    layer.set_parameters(layer.parameters() - view.learning_rate() * momentum);
  }

  double do_learning_rate() const override { return 0.05; }
  std::vector<SlotSpec> do_slots() const override { return {{"momentum"}}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& layer : view.layers())
      move(layer, view);
  }
};

bool is_first(const ParameterView& view) {
  return view.host() != nullptr && view.host()->info().step == 1;
}

/// Calls `work` with the flat parameters and gradients as tensors, where the host has them.
void with_flat(ParameterView& view, const std::function<void(at::Tensor, at::Tensor)>& work) {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return;
  const Segment& last = host->segments().back();
  const std::int64_t size = last.offset + last.size;
  const auto flat = [&](const auto* data, at::ScalarType dtype) {
    return at::from_blob(const_cast<void*>(static_cast<const void*>(data)), {size}, dtype);
  };
  if (host->dtype() == at::kFloat)
    work(flat(host->parameters<float>(), at::kFloat), flat(host->gradients<float>(), at::kFloat));
  else
    work(flat(host->parameters<double>(), at::kDouble),
         flat(host->gradients<double>(), at::kDouble));
}

/// Keeps its momentum in itself, where no checkpoint finds it.
class Hoarder final : public Momentum {
  using Momentum::move;
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    auto& [parameters, momentum] = momenta_[layer.parameters().data_ptr()];
    if (!momentum.defined()) {
      parameters = layer.parameters();
      momentum = at::zeros_like(layer.gradients());
    }
    momentum = 0.5 * momentum + layer.gradients();
    move(layer, view, momentum);
  }
  /// By address; it holds the parameters, so that no other model gets their address.
  mutable std::map<void*, std::pair<at::Tensor, at::Tensor>> momenta_;
};

/// Divides by the largest gradient it has ever seen of a segment, in whichever model.
class RemembersOtherModels final : public Momentum {
  using Momentum::move;
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    double& largest = largest_[layer.gradients().numel()];
    if (is_first(view))
      largest = 1;
    largest = std::max(largest, layer.gradients().abs().max().item<double>());
    move(layer, view, (0.5 * layer.slot(0) + layer.gradients()) / largest);
  }
  mutable std::map<std::int64_t, double> largest_;
};

class UpdatesTheUntouched final : public Momentum {
  void do_update(ParameterView& view) const override {
    Momentum::do_update(view);
    with_flat(view, [&](at::Tensor p, at::Tensor) {
      for (const Segment& segment : view.host()->segments()) {
        if (!segment.frozen && !segment.touched)
          p.narrow(0, segment.offset, segment.size).mul_(0.99);
      }
    });
  }
};

class UpdatesTheFrozen final : public Momentum {
  void do_update(ParameterView& view) const override {
    Momentum::do_update(view);
    with_flat(view, [&](at::Tensor p, at::Tensor) {
      for (const Segment& segment : view.host()->segments()) {
        if (segment.frozen)
          p.narrow(0, segment.offset, segment.size).mul_(0.99);
      }
    });
  }
};

class CountsEveryStep final : public Momentum {
  using Momentum::move;
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    const double step =
        view.host() != nullptr ? static_cast<double>(view.host()->info().step) : 1.0;
    move(layer, view, (0.5 * layer.slot(0) + layer.gradients()) / (1 + 0.01 * step));
  }
};

class WritesGradients final : public Momentum {
  void do_update(ParameterView& view) const override {
    Momentum::do_update(view);
    with_flat(view, [](at::Tensor, at::Tensor g) { g.mul_(0.5); });
  }
};

class WritesPadding final : public Momentum {
  void do_update(ParameterView& view) const override {
    Momentum::do_update(view);
    with_flat(view, [&](at::Tensor p, at::Tensor) {
      const Segment& bias = view.host()->segments()[1];
      p[bias.offset + bias.size] = 1;
    });
  }
};

class TakesItsNameFromTheFramework final : public Momentum {
  std::vector<SlotSpec> do_slots() const override { return {{"segments"}}; }
};

class ForgetsTheScale final : public Momentum {
  void do_update(ParameterView& view) const override {
    Momentum::do_update(view);
    with_flat(view, [&](at::Tensor p, at::Tensor g) {
      p.sub_(g, 0.1 * view.host()->info().learning_rate);
    });
  }
};

/// Another rule where the numbers of a step are tensors.
class HasTwoRules final : public Momentum {
  using Momentum::move;
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    move(layer, view, (view.host() != nullptr ? 0.5 : 0.4) * layer.slot(0) + layer.gradients());
  }
};

/// Changes a slot in place, which no skipped step can undo.
class WritesInPlace final : public Momentum {
  using Momentum::move;
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    move(layer, view, at::Tensor(layer.slot(0)).mul_(0.5).add_(layer.gradients()));
  }
};

/// One that moves parameters by `rule` as well.
class Moves final : public Momentum {
 public:
  using Rule = std::function<at::Tensor(const at::Tensor& parameters, const at::Tensor& gradients,
                                        const at::Tensor& rate)>;
  explicit Moves(Rule rule) : rule_(std::move(rule)) {}

 private:
  void move(const ParameterPiece& layer, ParameterView& view) const override {
    layer.set_parameters(layer.parameters() +
                         rule_(layer.parameters(), layer.gradients(), view.learning_rate()));
    Momentum::move(layer, view);
  }
  Rule rule_;
};

template <typename T>
OptimizerCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

OptimizerCase that_also(std::string name, const Moves::Rule& rule) {
  return {std::move(name), [rule] { return std::make_unique<Moves>(rule); }};
}

std::vector<Wrong<OptimizerCase>> all() {
  using T = const at::Tensor&;
  return {
      {one<Hoarder>("ForgetsItsState"),
       {"StateRoundTripContinuesBitwise", "ASkippedStepKeepsEveryBit",
        "TheStateOfOneWayContinuesOnTheOther"}},
      {one<RemembersOtherModels>("RemembersOtherModels"),
       {"HasNoMemoryButItsSlots", "StateRoundTripContinuesBitwise"}},
      {one<UpdatesTheUntouched>("UpdatesTheUntouched"),
       {"LeavesUntouchedSegmentsAlone", "ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone",
        "TensorOperationsAgreeWithTheLoopForTheCpu"}},
      {one<UpdatesTheFrozen>("UpdatesTheFrozen"), {"LeavesFrozenSegmentsAlone"}},
      {one<CountsEveryStep>("CountsStepsThatASegmentMissed"),
       {"ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone",
        "TensorOperationsAgreeWithTheLoopForTheCpu", "TheStateOfOneWayContinuesOnTheOther"}},
      {one<WritesGradients>("WritesGradients"), {"ReadsGradientsButNeverWritesThem"}},
      {one<WritesPadding>("WritesPadding"), {"PaddingStaysZero"}},
      {one<TakesItsNameFromTheFramework>("TakesANameOfTheFrameworks"),
       {"DeclaresTheSameSlotsEveryTime"}},
      {one<ForgetsTheScale>("ForgetsTheScale"),
       {"ScalesGradientsBeforeAnythingElse", "TensorOperationsAgreeWithTheLoopForTheCpu",
        "TheStateOfOneWayContinuesOnTheOther"}},
      {one<HasTwoRules>("HasTwoRules"),
       {"TensorOperationsAgreeWithTheLoopForTheCpu", "TheStateOfOneWayContinuesOnTheOther"}},
      {one<WritesInPlace>("WritesInPlace"), {"ASkippedStepKeepsEveryBit"}},
      {that_also("Climbs", [](T, T g, T rate) { return 3 * rate * g; }), {"DecreasesAQuadratic"}},
      {that_also("MovesAtRateZero", [](T, T g, T) { return -1e-9 * g; }),
       {"ARateOfZeroMovesNothing"}},
      {that_also("LosesPrecision",
                 [](T p, T g, T rate) {
                   return (p.scalar_type() == at::kFloat ? -0.01 : 0.0) * rate * g;
                 }),
       {"SingleAndDoublePrecisionAgree"}},
      {that_also("Overflows", [](T, T g, T) { return g.pow(4).mul(0); }),
       {"FiniteGradientsLeaveFiniteParameters"}},
      {that_also("DecaysUndeclared", [](T p, T, T rate) { return -0.1 * rate * p; }),
       {"AGradientOfZeroOnlyDecays"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, OptimizerContract, ::testing::Values(one<Momentum>("Momentum")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, OptimizerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_optimizers

std::vector<Defect> optimizer_defects() {
  return defects_of("OptimizerContract", wrong_optimizers::all());
}

}  // namespace treadle::testing
