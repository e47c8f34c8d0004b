#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <treadle/core/optimizer.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/case_name.h>

/// What every Optimizer must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerContract, ::testing::Values(
///         OptimizerCase{"Adam", [] { return plugin().make<Optimizer>("adam"); }}), CaseName());
namespace treadle::testing {

struct OptimizerCase {
  std::string name;
  std::function<std::unique_ptr<Optimizer>()> make;
  /// A rate at which a quadratic shrinks within 200 steps.
  double learning_rate = 0.05;
};

/// Three parameters in an arena, an optimizer's slots, and steps with given gradients.
class TrainedParameters {
 public:
  explicit TrainedParameters(const Optimizer& optimizer, at::ScalarType dtype = at::kDouble,
                             std::uint64_t seed = 5)
      : optimizer_(optimizer),
        module_(make_module(dtype, seed)),
        arena_(*module_),
        slots_(optimizer.slots(), arena_) {}

  std::size_t count() const { return arena_.segments().size(); }
  at::Tensor value(std::size_t i) const { return arena_.parameter(arena_.segments()[i]).clone(); }
  std::vector<at::Tensor> values() const {
    std::vector<at::Tensor> all;
    for (std::size_t i = 0; i < count(); ++i)
      all.push_back(value(i));
    return all;
  }
  torch::nn::Module& module() { return *module_; }
  ParameterArena& arena() { return arena_; }
  OptimizerSlots& slots() { return slots_; }

  /// One update. An undefined gradient leaves its parameter untouched.
  void step(const std::vector<at::Tensor>& gradients, double rate, double scale = 1) {
    arena_.zero_gradients();
    const auto parameters = module_->parameters();
    {
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (gradients[i].defined() && parameters[i].requires_grad())
          parameters[i].grad().copy_(gradients[i]);
      }
    }
    arena_.collect();
    Block block(arena_, slots_);
    optimizer_.update(block, {.step = ++steps_, .learning_rate = rate, .gradient_scale = scale});
  }

  static std::vector<at::Tensor> random_gradients(std::uint64_t seed,
                                                  at::ScalarType dtype = at::kDouble) {
    const TaskRandom random(seed);
    return {at::randn({3, 5}, dtype), at::randn({5}, dtype), at::randn({1}, dtype)};
  }

 private:
  static std::shared_ptr<torch::nn::Module> make_module(at::ScalarType dtype, std::uint64_t seed) {
    const auto values = random_gradients(seed, at::kDouble);
    auto module = std::make_shared<torch::nn::Module>("trained");
    module->register_parameter("weight", values[0].to(dtype));
    module->register_parameter("bias", values[1].to(dtype));
    module->register_parameter("scale", values[2].to(dtype));
    return module;
  }

  const Optimizer& optimizer_;
  std::shared_ptr<torch::nn::Module> module_;
  ParameterArena arena_;
  OptimizerSlots slots_;
  std::int64_t steps_ = 0;
};

class OptimizerContract : public ::testing::TestWithParam<OptimizerCase> {
 protected:
  double rate() const { return GetParam().learning_rate; }

  std::unique_ptr<Optimizer> optimizer_ = GetParam().make();
};

inline bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

TEST_P(OptimizerContract, DecreasesAQuadratic) {
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

TEST_P(OptimizerContract, LeavesUntouchedSegmentsAlone) {
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
    }
  }
}

TEST_P(OptimizerContract, ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone) {
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

TEST_P(OptimizerContract, LeavesFrozenSegmentsAlone) {
  TrainedParameters trained(*optimizer_);
  trained.module().parameters()[0].requires_grad_(false);
  const at::Tensor value = trained.value(0);

  for (std::uint64_t i = 0; i < 3; ++i)
    trained.step(TrainedParameters::random_gradients(i), rate());

  EXPECT_TRUE(at::equal(trained.value(0), value));
  EXPECT_FALSE(at::equal(trained.value(1), TrainedParameters(*optimizer_).value(1)));
}

TEST_P(OptimizerContract, ScalesGradientsBeforeAnythingElse) {
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

TEST_P(OptimizerContract, ReadsGradientsButNeverWritesThem) {
  TrainedParameters trained(*optimizer_);
  const auto gradients = TrainedParameters::random_gradients(1);

  trained.step(gradients, rate(), 0.5);

  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_TRUE(at::equal(trained.arena().gradient(trained.arena().segments()[i]), gradients[i]));
}

TEST_P(OptimizerContract, ARateOfZeroMovesNothing) {
  TrainedParameters trained(*optimizer_);
  const auto before = trained.values();

  trained.step(TrainedParameters::random_gradients(1), 0);

  EXPECT_TRUE(same_bits(trained.values(), before));
}

TEST_P(OptimizerContract, StateRoundTripContinuesBitwise) {
  TrainedParameters original(*optimizer_);
  for (std::uint64_t i = 0; i < 5; ++i)
    original.step(TrainedParameters::random_gradients(i), rate());
  const auto fresh = GetParam().make();
  TrainedParameters resumed(*fresh);
  resumed.arena().parameters().copy_(original.arena().parameters());
  resumed.slots().load_state(original.slots().state().snapshot());

  for (std::uint64_t i = 5; i < 10; ++i) {
    original.step(TrainedParameters::random_gradients(i), rate());
    resumed.step(TrainedParameters::random_gradients(i), rate());
  }

  EXPECT_TRUE(same_bits(resumed.values(), original.values()));
}

TEST_P(OptimizerContract, PaddingStaysZero) {
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

TEST_P(OptimizerContract, SingleAndDoublePrecisionAgree) {
  TrainedParameters narrow(*optimizer_, at::kFloat);
  TrainedParameters wide(*optimizer_, at::kDouble);

  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto gradients = TrainedParameters::random_gradients(i);
    narrow.step(gradients, rate());
    wide.step(gradients, rate());
  }

  for (std::size_t i = 0; i < wide.count(); ++i)
    EXPECT_TRUE(narrow.value(i).to(at::kDouble).allclose(wide.value(i), 1e-4, 1e-5))
        << narrow.value(i) << wide.value(i);
}

}  // namespace treadle::testing
