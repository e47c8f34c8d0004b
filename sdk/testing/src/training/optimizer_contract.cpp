#include <treadle/testing/training/optimizer_contract.h>

#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/training/optimizer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/test_device.h>
#include <treadle/testing/training/trained_parameters.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class OptimizerClaims : public ::testing::WithParamInterface<OptimizerCase> {
 protected:
  double rate() const { return GetParam().learning_rate; }

  std::unique_ptr<Optimizer> optimizer_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Optimizer)

CLAIM(Optimizer, DecreasesAQuadratic) {
  TrainedParameters trained(*optimizer_);
  const auto height = [&] {
    double sum = 0;
    for (const at::Tensor& value : trained.values())
      sum += 0.5 * value.square().sum().item<double>();
    return sum;
  };
  const double before = height();

  for (int i = 0; i < 200; ++i)
    trained.step(trained.values(), rate());  // the gradient of 0.5 * x^2 is x

  EXPECT_LT(height(), 0.05 * before);
}

CLAIM(Optimizer, AGradientOfZeroOnlyDecays) {
  TrainedParameters trained(*optimizer_);
  const auto before = trained.values();
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& value : before)
    zeros.push_back(at::zeros_like(value));

  trained.step(zeros, rate());

  for (std::size_t i = 0; i < before.size(); ++i) {
    const at::Tensor value = trained.value(i);
    if (GetParam().decays_weights) {
      EXPECT_TRUE(value.abs().lt(before[i].abs()).all().item<bool>()) << value << before[i];
      EXPECT_TRUE(value.sign().equal(before[i].sign())) << value << before[i];
    } else {
      EXPECT_TRUE(values_match(value, before[i])) << "parameter " << i;
    }
  }
}

CLAIM(Optimizer, FiniteGradientsLeaveFiniteParameters) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const double size : {1e-30, 1e-6, 1e12}) {
      TrainedParameters trained(*optimizer_, dtype);
      for (std::uint64_t i = 0; i < 3; ++i) {
        auto gradients = TrainedParameters::random_gradients(i, dtype);
        for (const at::Tensor& gradient : gradients)
          gradient.mul_(size);
        trained.step(gradients, rate());
      }
      for (const at::Tensor& value : trained.values())
        EXPECT_TRUE(value.isfinite().all().item<bool>()) << "gradients of about " << size;
    }
  }
}

CLAIM(Optimizer, HasNoMemoryButItsSlots) {
  TrainedParameters alone(*optimizer_);
  for (std::uint64_t i = 0; i < 4; ++i)
    alone.step(TrainedParameters::random_gradients(i), rate());

  // The same steps, with those of another model between them.
  TrainedParameters between(*optimizer_, at::kDouble, 6);
  TrainedParameters other(*optimizer_);
  for (std::uint64_t i = 0; i < 4; ++i) {
    between.step(TrainedParameters::random_gradients(100 + i), rate());
    other.step(TrainedParameters::random_gradients(i), rate());
  }

  EXPECT_TRUE(same_bits(other.values(), alone.values()));
}

CLAIM(Optimizer, DeclaresTheSameSlotsEveryTime) {
  const auto slots = optimizer_->slots();
  TrainedParameters trained(*optimizer_);
  trained.step(TrainedParameters::random_gradients(1), rate());
  const auto later = optimizer_->slots();

  std::set<std::string> names = {"segments", "steps"};  // the framework's own, in the saved state
  ASSERT_EQ(later.size(), slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(later[i].name, slots[i].name);
    EXPECT_EQ(later[i].kind, slots[i].kind);
    EXPECT_EQ(later[i].initial, slots[i].initial);
    EXPECT_FALSE(slots[i].name.empty());
    EXPECT_EQ(slots[i].name.find('/'), std::string::npos) << slots[i].name;
    EXPECT_TRUE(names.insert(slots[i].name).second) << slots[i].name << " is taken";
  }
  EXPECT_GT(optimizer_->learning_rate(), 0);
  EXPECT_TRUE(std::isfinite(optimizer_->learning_rate()));
}

CLAIM(Optimizer, RecordsNoGradients) {
  TrainedParameters trained(*optimizer_);

  trained.step(TrainedParameters::random_gradients(1), rate());

  EXPECT_TRUE(c10::GradMode::is_enabled());
  EXPECT_FALSE(trained.arena().parameters().requires_grad());
  for (std::size_t i = 0; i < trained.slots().count(); ++i)
    EXPECT_FALSE(trained.slots().tensor(i).requires_grad());
}

CLAIM(Optimizer, LeavesUntouchedSegmentsAlone) {
  TrainedParameters trained(*optimizer_);
  trained.step(TrainedParameters::random_gradients(1), rate());
  const at::Tensor value = trained.value(1);
  const StateDict before = trained.slots().state().snapshot();

  auto gradients = TrainedParameters::random_gradients(2);
  gradients[1] = at::Tensor();
  trained.step(gradients, rate());

  EXPECT_TRUE(at::equal(trained.value(1), value));
  const Segment& segment = trained.arena().segments()[1];
  const auto specs = optimizer_->slots();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor& old = before.tensor(specs[i].name);
    const at::Tensor& now = trained.slots().tensor(i);
    if (specs[i].kind == SlotSpec::Kind::kPerElement) {
      EXPECT_TRUE(at::equal(now.narrow(0, segment.offset, segment.size),
                            old.narrow(0, segment.offset, segment.size)))
          << specs[i].name;
    } else if (specs[i].kind == SlotSpec::Kind::kPerSegment) {
      EXPECT_EQ(now[1].item<double>(), old[1].item<double>()) << specs[i].name;
    } else if (specs[i].kind == SlotSpec::Kind::kTensor) {
      const OptimizerSlots::Place& place = trained.slots().place(i, 1);
      EXPECT_TRUE(at::equal(now.narrow(0, place.offset, place.size),
                            old.narrow(0, place.offset, place.size)))
          << specs[i].name;
    }
  }
}

CLAIM(Optimizer, ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone) {
  TrainedParameters skipping(*optimizer_);
  TrainedParameters steady(*optimizer_);
  const auto first = TrainedParameters::random_gradients(1);
  const auto last = TrainedParameters::random_gradients(3);
  auto between = TrainedParameters::random_gradients(2);
  between[0] = at::Tensor();

  skipping.step(first, rate());
  skipping.step(between, rate());
  skipping.step(last, rate());
  steady.step(first, rate());
  steady.step(last, rate());

  EXPECT_TRUE(at::equal(skipping.value(0), steady.value(0)));
}

CLAIM(Optimizer, LeavesFrozenSegmentsAlone) {
  TrainedParameters trained(*optimizer_);
  trained.module().parameters()[0].requires_grad_(false);
  const at::Tensor value = trained.value(0);

  for (std::uint64_t i = 0; i < 3; ++i)
    trained.step(TrainedParameters::random_gradients(i), rate());

  EXPECT_TRUE(at::equal(trained.value(0), value));
  EXPECT_FALSE(at::equal(trained.value(1), TrainedParameters(*optimizer_).value(1)));
}

CLAIM(Optimizer, ScalesGradientsBeforeAnythingElse) {
  TrainedParameters scaled(*optimizer_);
  TrainedParameters plain(*optimizer_);

  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto gradients = TrainedParameters::random_gradients(i);
    std::vector<at::Tensor> quarters;
    for (const at::Tensor& gradient : gradients)
      quarters.push_back(gradient.mul(0.25));  // exact, so the bits must agree
    scaled.step(gradients, rate(), 0.25);
    plain.step(quarters, rate());
  }

  EXPECT_TRUE(same_bits(scaled.values(), plain.values()));
}

CLAIM(Optimizer, ReadsGradientsButNeverWritesThem) {
  TrainedParameters trained(*optimizer_);
  const auto gradients = TrainedParameters::random_gradients(1);

  trained.step(gradients, rate(), 0.5);

  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(at::equal(trained.arena().gradient(trained.arena().segments()[i]), gradients[i]));
}

CLAIM(Optimizer, ARateOfZeroMovesNothing) {
  TrainedParameters trained(*optimizer_);
  const auto before = trained.values();

  trained.step(TrainedParameters::random_gradients(1), 0);

  EXPECT_TRUE(same_bits(trained.values(), before));
}

CLAIM(Optimizer, StateRoundTripContinuesBitwise) {
  TrainedParameters original(*optimizer_);
  for (std::uint64_t i = 0; i < 5; ++i)
    original.step(TrainedParameters::random_gradients(i), rate());
  const auto fresh = GetParam().make();
  TrainedParameters resumed(*fresh);
  resumed.continue_from(original);

  for (std::uint64_t i = 5; i < 10; ++i) {
    original.step(TrainedParameters::random_gradients(i), rate());
    resumed.step(TrainedParameters::random_gradients(i), rate());
  }

  EXPECT_TRUE(same_bits(resumed.values(), original.values()));
}

CLAIM(Optimizer, PaddingStaysZero) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    TrainedParameters trained(*optimizer_, dtype);
    for (std::uint64_t i = 0; i < 5; ++i)
      trained.step(TrainedParameters::random_gradients(i, dtype), rate());

    at::Tensor rest = trained.arena().parameters().clone();
    for (const Segment& segment : trained.arena().segments())
      rest.narrow(0, segment.offset, segment.size).zero_();
    EXPECT_EQ(rest.count_nonzero().item<std::int64_t>(), 0);
  }
}

CLAIM(Optimizer, SingleAndDoublePrecisionAgree) {
  TrainedParameters narrow(*optimizer_, at::kFloat);
  TrainedParameters wide(*optimizer_, at::kDouble);

  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto gradients = TrainedParameters::random_gradients(i);
    narrow.step(gradients, rate());
    wide.step(gradients, rate());
  }

  for (std::size_t i = 0; i < wide.count(); ++i)
    EXPECT_TRUE(narrow.value(i)
                    .to(at::kDouble)
                    .allclose(wide.value(i), 10 * GetParam().precision_distance,
                              GetParam().precision_distance))
        << narrow.value(i) << wide.value(i);
}

// As on a device: no number of the step is known to the host.

inline constexpr auto kTensors = ParameterView::Path::kTensors;

CLAIM(Optimizer, TensorOperationsAgreeWithTheLoopForTheCpu) {
  if (GetParam().is_for_cpu_only)
    GTEST_SKIP() << "has no tensor operations";
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    TrainedParameters fastest(*optimizer_, dtype);
    TrainedParameters tensors(*optimizer_, dtype, 5, kTensors);
    for (std::uint64_t i = 0; i < 20; ++i) {
      auto gradients = TrainedParameters::random_gradients(i, dtype);
      if (i % 5 == 3)
        gradients[1] = at::Tensor();
      fastest.step(gradients, rate(), 0.5);
      tensors.step(gradients, rate(), 0.5);
    }
    const double bound = dtype == at::kFloat ? 1e-6 : 1e-14;
    for (std::size_t i = 0; i < fastest.count(); ++i) {
      EXPECT_TRUE(tensors.value(i).allclose(fastest.value(i), bound, bound))
          << tensors.value(i) << fastest.value(i);
    }
  }
}

CLAIM(Optimizer, ASkippedStepKeepsEveryBit) {
  if (GetParam().is_for_cpu_only)
    GTEST_SKIP() << "has no tensor operations";
  TrainedParameters skipping(*optimizer_, at::kDouble, 5, kTensors);
  TrainedParameters steady(*optimizer_, at::kDouble, 5, kTensors);
  const auto step = [&](TrainedParameters& trained, std::uint64_t i, bool skip) {
    trained.step_on_device(TrainedParameters::random_gradients(i), rate(), skip);
  };
  step(skipping, 1, false);
  const std::vector<at::Tensor> values = skipping.values();
  const StateDict slots = skipping.slots().state().snapshot();

  step(skipping, 2, true);

  EXPECT_TRUE(same_bits(skipping.values(), values));
  const StateDict after = skipping.slots().state();
  for (const auto& [name, tensor] : after.tensors())
    EXPECT_TRUE(at::equal(tensor, slots.tensor(name))) << name;
  step(skipping, 3, false);
  step(steady, 1, false);
  step(steady, 3, false);
  EXPECT_TRUE(same_bits(skipping.values(), steady.values())) << "as if there had been no such step";
}

CLAIM(Optimizer, TheStateOfOneWayContinuesOnTheOther) {
  if (GetParam().is_for_cpu_only)
    GTEST_SKIP() << "has no tensor operations";
  TrainedParameters fastest(*optimizer_);
  TrainedParameters tensors(*optimizer_, at::kDouble, 6, kTensors);
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto gradients = TrainedParameters::random_gradients(i);
    if (i == 1)
      gradients[2] = at::Tensor();
    fastest.step(gradients, rate());
  }
  tensors.step(TrainedParameters::random_gradients(9), rate());  // has made its views
  tensors.continue_from(fastest);

  for (std::uint64_t i = 3; i < 6; ++i) {
    fastest.step(TrainedParameters::random_gradients(i), rate());
    tensors.step(TrainedParameters::random_gradients(i), rate());
  }

  for (std::size_t i = 0; i < fastest.count(); ++i) {
    EXPECT_TRUE(tensors.value(i).allclose(fastest.value(i), 1e-13, 1e-13))
        << tensors.value(i) << fastest.value(i);
  }
}

CLAIM(Optimizer, TensorOperationsAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  if (GetParam().is_for_cpu_only)
    GTEST_SKIP() << "has no tensor operations";
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    SCOPED_TRACE(dtype == at::kFloat ? "float32" : "float64");
    const auto trained_on = [&](c10::Device where) {
      TrainedParameters trained(*optimizer_, dtype, 5, kTensors, where);
      for (std::uint64_t i = 0; i < 6; ++i) {
        auto gradients = TrainedParameters::random_gradients(i, dtype);
        if (i == 2)
          gradients[1] = at::Tensor();
        trained.step_on_device(gradients, rate(), /*skip=*/i == 4);
      }
      NamedResults results;
      for (std::size_t i = 0; i < trained.count(); ++i)
        add_result(results, "parameter " + std::to_string(i), trained.value(i));
      const StateDict slots = trained.slots().state();
      for (const auto& [name, tensor] : slots.tensors())
        add_result(results, name, tensor);
      return results;
    };

    expect_results(trained_on(device->device()), trained_on(c10::kCPU), device->closeness(dtype));
  }
}

}  // namespace treadle::testing
