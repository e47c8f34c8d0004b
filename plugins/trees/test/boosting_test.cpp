#include "boosting.h"

#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/model/weights.h>
#include <treadle/testing/component/component_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/test_device.h>
#include <treadle/testing/support/whole_training.h>
#include <treadle/testing/training/training_contract.h>

#include "made_trees.h"
#include "trees_model.h"

namespace treadle::trees {
namespace {

using ::testing::HasSubstr;

const testing::PluginUnderTest& plugin() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::shared_ptr<Model> model_of_a_line(const nlohmann::json& options = nlohmann::json::object()) {
  ModelSpec spec = spec_for(number_target("price"), 2, 1);
  spec.dtype = at::kDouble;
  return std::make_shared<TreesModel>(spec, growth(options));
}

std::shared_ptr<TreesModel> grown_model(const TargetSpec& target, std::int64_t width,
                                        c10::ScalarType dtype = at::kFloat) {
  ModelSpec spec = spec_for(target, 3, width);
  spec.dtype = dtype;
  auto model = std::make_shared<TreesModel>(spec, growth());
  const at::Tensor rows = waves(100, 3);
  TreeSum& trees = model->trees();
  TreeGrower grower(rows, {rows.slice(1, 0, 1).gt(0).to(at::kFloat), {}}, "binary:logistic",
                    growth(), 1);
  trees.add_round(grower.grow(trees.margins_of(rows), 1), library_version());
  return model;
}

at::Tensor outputs_of(Model& model, const at::Tensor& rows) {
  const at::Tensor inputs[] = {rows};
  Outputs outputs(1);
  ForwardContext context;
  model.forward(inputs, outputs, context);
  return outputs[0];
}

TEST(TreesModel, OfTwoClassesHasTheLogitsZeroAndMargin) {
  const TargetSpec two = class_target("side", {"left", "right"});
  const auto one = grown_model(two, 1);
  const auto both = grown_model(two, 2);

  const at::Tensor logits = outputs_of(*both, waves(20, 3));

  EXPECT_TRUE(at::equal(logits.slice(1, 1, 2), outputs_of(*one, waves(20, 3))));
  EXPECT_FALSE(logits.select(1, 0).any().item<bool>());
}

TEST(TreesModel, GivesOutputsOfItsDtype) {
  EXPECT_EQ(
      outputs_of(*grown_model(number_target("y"), 1, at::kDouble), waves(4, 3).to(at::kDouble))
          .scalar_type(),
      at::kDouble);
}

TEST(TreesModel, RowsDoNotDependOnTheirBatchNorOnThreads) {
  const auto model = grown_model(number_target("y"), 1);
  const at::Tensor rows = waves(200, 3);
  const at::Tensor all = outputs_of(*model, rows);

  for (std::int64_t row = 0; row < rows.size(0); ++row)
    EXPECT_TRUE(
        at::equal(outputs_of(*model, rows.slice(0, row, row + 1)), all.slice(0, row, row + 1)));
  std::vector<at::Tensor> results(4);
  const auto errors = testing::at_once(
      results.size(), [&](std::size_t thread) { results[thread] = outputs_of(*model, rows); });
  EXPECT_EQ(errors, testing::kNoErrors);
  for (const at::Tensor& result : results)
    EXPECT_TRUE(at::equal(result, all));
}

/// Trees are walked on the CPU, wherever the rows are.
TEST(TreesModel, GivesTheSameBitsOnADevice) {
  const testing::TestDevice* const device = testing::TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << testing::TestDevice::kNone;
  const auto model = grown_model(number_target("y"), 1);
  const at::Tensor there = outputs_of(*model, device->moved(waves(40, 3)));

  EXPECT_EQ(there.device().type(), device->device().type());
  EXPECT_TRUE(at::equal(there.to(at::kCPU), outputs_of(*model, waves(40, 3))));
}

TEST(TreesModel, KeptMarginsHaveTheSameBits) {
  const auto plain = grown_model(number_target("y"), 1);
  const auto keeping = grown_model(number_target("y"), 1);
  keeping->keep_margins(true);
  const std::vector<at::Tensor> batches = waves(90, 3).split(30);
  for (int round = 0; round < 5; ++round) {
    for (TreesModel* const model : {plain.get(), keeping.get()})
      model->trees().add_round({{{0.1F * static_cast<float>(round), 0, 0}}}, "1");
    const auto errors = testing::at_once(4, [&](std::size_t thread) {
      const at::Tensor& batch = batches[thread % batches.size()];
      const at::Tensor outputs = outputs_of(*keeping, batch);
      EXPECT_TRUE(at::equal(outputs, outputs_of(*plain, batch))) << round;
      outputs.fill_(1000);  // callers may write to outputs
    });
    EXPECT_EQ(errors, testing::kNoErrors);
  }

  keeping->load_extra_state(TreeSum(3, 1).bytes());
  EXPECT_FALSE(outputs_of(*keeping, batches[0]).any().item<bool>());
}

TEST(TreesModel, AllPortsAreColumns) {
  const at::Tensor numbers = waves(5, 2);
  const at::Tensor image = waves(5, 6).view({5, 1, 2, 3});
  const at::Tensor indices = at::arange(5, at::kLong).view({5, 1});
  const at::Tensor inputs[] = {numbers, image, indices};
  const at::Tensor rows = TreesModel::rows_of(inputs);
  EXPECT_EQ(rows.sizes(), (std::vector<std::int64_t>{5, 9}));
  EXPECT_EQ(rows[3][8].item<float>(), 3);
}

std::string refusal_of(const ModelSpec& spec) {
  try {
    plugin().make<ModelProvider>("gradient_boosted_trees")->create(spec);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TreesModel, RefusesWhatTreesCannotPredict) {
  EXPECT_EQ(refusal_of(spec_for(number_target("y", 2), 3, 2)), "accepted");
  EXPECT_THAT(refusal_of(spec_for(number_target("y"), 3, 2)), HasSubstr("mse for numbers"));
  EXPECT_THAT(refusal_of(spec_for(class_target("y", {"a", "b", "c"}), 3, 1)),
              HasSubstr("cross_entropy"));
  EXPECT_THAT(refusal_of(spec_for(class_target("y", {"a", "b"}, {28, 28}), 3, 2)),
              HasSubstr("for each row"));
  EXPECT_THAT(refusal_of(spec_for(number_target("y"), kVaries, 1)), HasSubstr("vary"));
  ModelSpec two = spec_for(number_target("y"), 3, 1);
  two.targets.push_back(number_target("z"));
  EXPECT_THAT(refusal_of(two), HasSubstr("train one model for each"));
  ModelSpec tokens = spec_for(number_target("y"), 3, 1);
  tokens.inputs[0].role = Role::kTokens;
  EXPECT_THAT(refusal_of(tokens), HasSubstr("tokens"));
}

TEST(Boosting, RefusesOtherModels) {
  testing::Rehearsal rehearsal(plugin().make<TrainingWorkflow>("boosting"));
  testing::RecordingContext context;
  try {
    rehearsal.train(context);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("set \"model\" to it"));
  }
}

TEST(Boosting, TheLossOfTheHistoryIsThatOfTheModel) {
  const testing::Whole whole(std::make_unique<testing::Rehearsal>(
      plugin().make<TrainingWorkflow>("boosting"),
      testing::Rehearsed{.make_model = [] { return model_of_a_line(); }}));
  testing::Rehearsal& rehearsal = *whole.rehearsal;
  const EpochSummary& last = whole.context.epochs().back();
  EXPECT_NEAR(last.train_loss, rehearsal.loss_on(rehearsal.training()), 1e-9);
  EXPECT_NEAR(*last.val_loss, rehearsal.loss_on(rehearsal.validation()), 1e-9);
}

std::unique_ptr<testing::Rehearsal> saved_each_round() {
  return std::make_unique<testing::Rehearsal>(
      plugin().make<TrainingWorkflow>("boosting"),
      testing::Rehearsed{.checkpoint_every = {0, Duration::Unit::kSeconds}, .make_model = [] {
                           return model_of_a_line({{"subsample", 0.7}, {"colsample_bynode", 0.5}});
                         }});
}

TEST(Boosting, SeveralRoundsInAnEpochAreThoseOfAsManyEpochs) {
  const auto bits_of = [](std::int64_t epochs, std::int64_t rounds_per_epoch) {
    const testing::Whole whole(std::make_unique<testing::Rehearsal>(
        plugin().make<TrainingWorkflow>("boosting", {{"rounds_per_epoch", rounds_per_epoch}}),
        testing::Rehearsed{.epochs = epochs, .make_model = [] {
                             return model_of_a_line({{"subsample", 0.7}});
                           }}));
    return whole.rehearsal->loss_on(whole.rehearsal->validation());
  };
  EXPECT_EQ(bits_of(2, 3), bits_of(6, 1));
}

TEST(Boosting, GoesOnFromEveryRound) {
  const testing::Whole whole(saved_each_round());
  EXPECT_GE(whole.context.checkpoints().size(), 5U);
  testing::expect_every_checkpoint_leads_to_the_same_end(saved_each_round);
}

// As a stop leaves it that comes while the validation rows are evaluated.
TEST(Boosting, ARoundThatIsGrownIsNotGrownAgain) {
  const testing::Whole whole(saved_each_round());
  const auto& checkpoints = whole.context.checkpoints();
  for (std::size_t i = 0; i + 1 < checkpoints.size(); ++i) {
    testing::RecordingContext::Saved within = checkpoints[i];
    for (const char* const part : {"model", "loop"})
      within.state.put(part, checkpoints[i + 1].state.part(part));
    testing::RecordingContext context(whole.context, within);
    testing::expect_same_end(context, saved_each_round, whole);
  }
}

}  // namespace
}  // namespace treadle::trees

namespace treadle::testing {

INSTANTIATE_TEST_SUITE_P(
    Boosting, TrainingContract,
    ::testing::Values(
        TrainingCase{.name = "Defaults",
                     .make = [] { return trees::plugin().make<TrainingWorkflow>("boosting"); },
                     .make_model = [] { return trees::model_of_a_line(); }},
        TrainingCase{
            .name = "Drawn",
            .make = [] { return trees::plugin().make<TrainingWorkflow>("boosting"); },
            .make_model =
                [] {
                  return trees::model_of_a_line({{"subsample", 0.7}, {"colsample_bynode", 0.5}});
                }}),
    CaseName());

}  // namespace treadle::testing
