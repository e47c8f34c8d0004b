// What the claims that end in OnADevice find: components that are right on a CPU, and wrong, each
// in its own way, on a device whose memory the host cannot read.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/training/optimizer_contract.h>

namespace treadle::testing {
namespace {

using Change = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor unchanged(const at::Tensor& tensor) {
  return tensor;
}

at::Tensor with_a_tensor_of_the_host(const at::Tensor& tensor) {
  return tensor.add(at::ones(tensor.sizes(), tensor.dtype()));
}

at::Tensor brought_to_the_host(const at::Tensor& tensor) {
  return tensor.cpu();
}

/// Through a pointer, as a loop of one's own would.
at::Tensor read_by_the_host(const at::Tensor& tensor) {
  const at::Tensor all = tensor.contiguous();
  const auto first = [&](const auto* numbers) { return static_cast<double>(numbers[0]); };
  return tensor.add(all.scalar_type() == at::kFloat ? first(all.data_ptr<float>())
                                                    : first(all.data_ptr<double>()));
}

/// A linear layer whose results are changed.
class ChangedLinear final : public Layer {
 public:
  ChangedLinear(const LayerSpec& spec, Change change)
      : weight_(register_parameter("weight", at::randn({3, spec.inputs[0].width()}, spec.dtype))),
        change_(std::move(change)) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return change_(at::linear(inputs[0], weight_));
  }

 private:
  const at::Tensor weight_;
  const Change change_;
};

class ChangedLinearFactory final : public LayerFactory {
 public:
  explicit ChangedLinearFactory(Change change) : change_(std::move(change)) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<ChangedLinear>(spec, change_);
  }

  const Change change_;
};

/// Squared error of changed outputs.
class ChangedSquares final : public Loss {
 public:
  explicit ChangedSquares(Change change) : change_(std::move(change)) {}

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.shape}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor each = change_(outputs[0]).sub(target.values()).square().sum(-1);
    return {(target.weights().defined() ? each.mul(target.weights()) : each).sum(), {}};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }

  const Change change_;
};

/// Gradient descent along changed gradients.
class ChangedDescent final : public Optimizer {
 public:
  explicit ChangedDescent(Change change) : change_(std::move(change)) {}

 private:
  double do_learning_rate() const override { return 0.05; }
  std::vector<SlotSpec> do_slots() const override { return {}; }
  void do_update(ParameterView& view) const override {
    for (const ParameterPiece& layer : view.layers())
      layer.set_parameters(layer.parameters() - view.learning_rate() * change_(layer.gradients()));
  }

  const Change change_;
};

struct Changed {
  std::string name;
  Change change;
};

const std::vector<Changed>& all_changed() {
  static const std::vector<Changed> all{{"Right", unchanged},
                                        {"Mixes", with_a_tensor_of_the_host},
                                        {"Moves", brought_to_the_host},
                                        {"Reads", read_by_the_host}};
  return all;
}

template <typename Case, typename Make>
std::vector<Case> changed_cases(const Make& make) {
  std::vector<Case> cases;
  for (const Changed& changed : all_changed())
    cases.push_back(make(changed));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Far, LayerContract,
                         ::testing::ValuesIn(changed_cases<LayerCase>([](const Changed& changed) {
                           return LayerCase{
                               changed.name, [changed] {
                                 return std::make_unique<ChangedLinearFactory>(changed.change);
                               }};
                         })),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Far, LossContract,
                         ::testing::ValuesIn(changed_cases<LossCase>([](const Changed& changed) {
                           return LossCase{
                               changed.name,
                               [changed] {
                                 return std::make_unique<ChangedSquares>(changed.change);
                               },
                               LossCase::numbers(2)};
                         })),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Far, OptimizerContract,
                         ::testing::ValuesIn(changed_cases<OptimizerCase>([](const Changed& one) {
                           return OptimizerCase{
                               one.name,
                               [one] { return std::make_unique<ChangedDescent>(one.change); }};
                         })),
                         CaseName());

/// A claim about one of them, in a process of its own: the host's access ends it.
class Claim : public ::testing::TestWithParam<std::string> {
 protected:
  struct Verdict {
    int status = 0;
    std::string output;
  };

  static Verdict verdict_on(const std::string& changed) {
    const ScratchFolder folder;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path output = folder.path() / "output.txt";
    const std::string command =
        "'" + program.string() + "' --gtest_also_run_disabled_tests --gtest_filter='DISABLED_Far/" +
        GetParam() + "OnADevice/" + changed + "' > " + output.string() + " 2>&1";
    Verdict verdict;
    verdict.status = std::system(command.c_str());
    std::ostringstream text;
    text << std::ifstream(output).rdbuf();
    verdict.output = text.str();
    return verdict;
  }
};

TEST_P(Claim, HoldsForWhatIsRight) {
  const Verdict verdict = verdict_on("Right");

  EXPECT_EQ(verdict.status, 0) << verdict.output;
  EXPECT_THAT(verdict.output, ::testing::HasSubstr("[  PASSED  ] 1 test"));
}

TEST_P(Claim, FindsTensorsOfTheHostAmongOperands) {
  const Verdict verdict = verdict_on("Mixes");

  EXPECT_NE(verdict.status, 0);
  EXPECT_THAT(verdict.output, ::testing::HasSubstr("found at least two devices"));
}

TEST_P(Claim, FindsResultsThatLeftTheDevice) {
  const Verdict verdict = verdict_on("Moves");

  EXPECT_NE(verdict.status, 0);
  EXPECT_THAT(verdict.output, ::testing::AnyOf(::testing::HasSubstr("is on cpu, not on"),
                                               ::testing::HasSubstr("found at least two devices")));
}

TEST_P(Claim, FindsReadingThroughAPointer) {
  const Verdict verdict = verdict_on("Reads");

  EXPECT_NE(verdict.status, 0) << verdict.output;
  EXPECT_THAT(verdict.output, ::testing::Not(::testing::HasSubstr("[  PASSED  ]")));
}

INSTANTIATE_TEST_SUITE_P(All, Claim,
                         ::testing::Values("LayerContract.ForwardAndBackwardAgree",
                                           "LossContract.TermsAndGradientsAgree",
                                           "OptimizerContract.TensorOperationsAgree"));

TEST(TestDeviceOfATest, ThatIsNotThereIsAnError) {
  const auto error_with = [](const char* device, const char* gone) {
    const ScratchFolder folder;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
    const std::filesystem::path output = folder.path() / "output.txt";
    const std::string command = std::string(gone) + " TREADLE_TEST_DEVICE=" + device + " '" +
                                program.string() +
                                "' --gtest_also_run_disabled_tests "
                                "--gtest_filter='DISABLED_Far/Loss*OnADevice/Right' > " +
                                output.string() + " 2>&1";
    EXPECT_NE(std::system(command.c_str()), 0);
    std::ostringstream text;
    text << std::ifstream(output).rdbuf();
    return text.str();
  };

  EXPECT_THAT(error_with("nowhere", ""),
              ::testing::HasSubstr("no plugin has a device \"nowhere\""));
  EXPECT_THAT(error_with("far", "FAR_DEVICE_GONE='the cable is out'"),
              ::testing::HasSubstr("\"far\" is not there: the cable is out"));
}

}  // namespace
}  // namespace treadle::testing
