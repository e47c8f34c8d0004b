// Steps of a structure beside steps of the weights: each changes its own, on rows of its own.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/testing/support/rehearsal.h>

namespace treadle::engine {
namespace {

using ::testing::HasSubstr;
using testing::RecordingContext;
using testing::Rehearsal;

/// x through tanh or as it is.
class Chooser final : public torch::nn::Module, public WeighsOperations {
 public:
  explicit Chooser(std::string name) : name_(std::move(name)) {
    alphas_ = register_parameter(std::string(kParameter), at::zeros({1, 2}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor weights = at::softmax(alphas_, -1)[0];
    return x * weights[0] + x.tanh() * weights[1];
  }
  const std::string& structure() const override { return name_; }
  std::span<const OperationChoice> choices() const override { return choices_; }
  at::Tensor weights() const override { return at::softmax(alphas_.detach(), -1); }
  void allow(std::size_t, const std::vector<bool>&) override {}
  std::vector<bool> allowed(std::size_t) const override { return {true, true}; }

 private:
  std::string name_;
  std::vector<OperationChoice> choices_{{"only", "", {"skip", "tanh"}}};
  at::Tensor alphas_;
};

class ChoosingModel final : public Model {
 public:
  explicit ChoosingModel(const std::vector<std::string>& structures) {
    const TaskRandom random(4);
    linear_ = register_module("linear", torch::nn::Linear(2, 1));
    linear_->to(at::kDouble);
    for (const std::string& name : structures)
      choosers_.push_back(register_module("chooser_" + std::to_string(choosers_.size()),
                                          std::make_shared<Chooser>(name)));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    at::Tensor x = inputs[0].to(at::kDouble);
    for (const auto& chooser : choosers_)
      x = chooser->forward(x);
    outputs[0] = linear_->forward(x);
  }
  at::Tensor alphas() const { return choosers_.front()->parameters().front().detach().clone(); }
  at::Tensor weight() const { return linear_->weight.detach().clone(); }

 private:
  torch::nn::Linear linear_{nullptr};
  std::vector<std::shared_ptr<Chooser>> choosers_;
};

/// Looks at what each kind of step has changed.
class Watching final : public TrainingWorkflow {
 public:
  explicit Watching(const ChoosingModel& model) : model_(model) {}

  std::vector<std::string> changed;
  double loss = 0;

 private:
  void do_train(TrainingSession& session) override {
    auto& search = dynamic_cast<SearchesStructure&>(session);
    while (session.next_epoch()) {
      for (bool goes_on = true; goes_on;) {
        note("structure", [&] {
          search.step_structure(session.scheduled_rate());
          return true;
        });
        goes_on = note("step", [&] { return session.step(session.scheduled_rate()); });
      }
      session.finish_epoch();
    }
    loss = search.structure_loss();
  }

  bool note(const std::string& what, const std::function<bool()>& act) {
    const at::Tensor alphas = model_.alphas();
    const at::Tensor weight = model_.weight();
    const bool result = act();
    changed.push_back(what + (at::equal(alphas, model_.alphas()) ? "" : " alphas") +
                      (at::equal(weight, model_.weight()) ? "" : " weight"));
    return result;
  }

  const ChoosingModel& model_;
};

struct Searched {
  explicit Searched(const std::vector<std::string>& structures = {"one"})
      : model(structures),
        rehearsal({.epochs = 2}),
        aside(testing::noisy_line(20, 9, 0.1), transform, {.batch_size = 16, .shuffle = true}),
        judged(testing::noisy_line(20, 9, 0.1), transform, {.batch_size = 10}) {
    setup = rehearsal.setup();
    setup.model = &model;
    setup.structure_training = &aside;
    setup.structure_evaluation = &judged;
  }

  testing::Tenfold transform;
  ChoosingModel model;
  Rehearsal rehearsal;
  testing::TableSource aside;
  testing::TableSource judged;
  SessionSetup setup;
};

TEST(StructureTest, EachKindOfStepChangesItsOwn) {
  Searched searched;
  Watching loop(searched.model);
  RecordingContext context;
  train(loop, searched.setup, context);
  // Three batches an epoch, and the one that is not there.
  const std::vector<std::string> epoch{
      "structure alphas", "step weight", "structure alphas", "step weight",
      "structure alphas", "step weight", "structure",        "step"};
  std::vector<std::string> expected = epoch;
  expected.insert(expected.end(), epoch.begin(), epoch.end());
  EXPECT_EQ(loop.changed, expected);
}

TEST(StructureTest, TheLossIsThatOfTheRowsSetAside) {
  Searched searched;
  Watching loop(searched.model);
  RecordingContext context;
  train(loop, searched.setup, context);
  SessionSetup other = searched.setup;
  other.validation = &searched.judged;
  EXPECT_EQ(loop.loss, validate(other, {}).loss);
  EXPECT_NE(loop.loss, validate(searched.setup, {}).loss);
}

TEST(StructureTest, AResumedSearchGoesOnWithTheSameBatches) {
  Searched whole;
  Watching loop(whole.model);
  RecordingContext context;
  train(loop, whole.setup, context);
  const StateDict expected = module_state(whole.model).snapshot();
  ASSERT_GE(context.checkpoints().size(), 2);
  for (const RecordingContext::Saved& saved : context.checkpoints()) {
    Searched again;
    Watching rest(again.model);
    RecordingContext resumed(context, saved);
    train(rest, again.setup, resumed);
    EXPECT_TRUE(testing::same_bits(module_state(again.model).snapshot(), expected))
        << "from step " << saved.position.steps_done;
  }
}

TEST(StructureTest, AModelWithNothingToChooseIsRefused) {
  const auto message = [](const std::vector<std::string>& structures) -> std::string {
    Searched searched(structures);
    Watching loop(searched.model);
    RecordingContext context;
    try {
      train(loop, searched.setup, context);
    } catch (const DataError& error) {
      return error.what();
    }
    return "not refused";
  };
  EXPECT_THAT(message({}), HasSubstr("nothing in the model can be chosen"));
  EXPECT_THAT(message({"one", "one"}), HasSubstr("called \"one\""));
}

}  // namespace
}  // namespace treadle::engine
