// Whole trainings: stopped and resumed, in groups, and in shards with any number of workers.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/whole_training.h>

namespace treadle::testing {
namespace {

struct TrainedRule {
  std::string name;
  std::string component;
  nlohmann::json parameters = {};
};

class EveryTraining : public ::testing::TestWithParam<TrainedRule> {
 protected:
  static std::unique_ptr<Optimizer> make(const std::string& name,
                                         const nlohmann::json& parameters) {
    static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
    return kPlugin.make<Optimizer>(name, parameters);
  }

  std::unique_ptr<Rehearsal> rehearsal(const Rehearsed& rehearsed) const {
    auto made = std::make_unique<Rehearsal>(rehearsed);
    made->setup().optimizer = optimizer_.get();
    return made;
  }

  const std::unique_ptr<Optimizer> optimizer_ = make(GetParam().component, GetParam().parameters);
};

TEST_P(EveryTraining, StopsAfterEveryStepChangeNothing) {
  for (const Rehearsed& rehearsed : {Rehearsed{}, Rehearsed{.sixteen_bits = true}})
    expect_stops_after_every_step_change_nothing([&] { return rehearsal(rehearsed); });
}

TEST_P(EveryTraining, StopsChangeNothingInGroups) {
  const auto others = make("adamw", {});
  expect_stops_after_every_step_change_nothing([&] {
    auto made = rehearsal({});
    made->setup().groups = {{others.get(), {"hidden.weight"}}};
    return made;
  });
}

// The rate of the schedule falls from step to step; tensors are as on a device.
TEST_P(EveryTraining, TensorsTrainAsTheHostDoes) {
  const Whole by_host(rehearsal({}));
  const Whole by_tensors(rehearsal({.path = ParameterView::Path::kTensors}));
  EXPECT_NEAR(by_tensors.result.final_loss, by_host.result.final_loss, 1e-10);
}

TEST_P(EveryTraining, WorkersChangeNoBitOfFourShards) {
  const auto trained = [&](int workers) {
    const auto make_model = [] { return std::make_shared<TinyModel>(1, 0); };
    const auto made = rehearsal({.epochs = 2, .make_model = make_model});
    std::vector<std::shared_ptr<TinyModel>> replicas;
    for (int i = 0; i < 3; ++i) {
      replicas.push_back(make_model());
      made->setup().replicas.push_back(replicas.back().get());
    }
    RecordingContext context;
    engine::ThreadBudget budget(workers);
    budget.run([&] { made->train(context); });
    return made->weights();
  };
  EXPECT_TRUE(same_bits(trained(1), trained(3)));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, EveryTraining,
    ::testing::Values(
        TrainedRule{"Muon", "muon", {{"cautious_weight_decay", true}, {"weight_decay", 0.1}}},
        TrainedRule{"Soap", "soap", {{"precondition_frequency", 2}}},
        TrainedRule{"ScheduleFree", "schedule_free_adamw", {{"warmup_steps", 3}}},
        TrainedRule{"Adafactor", "adafactor"}),
    CaseName());

}  // namespace
}  // namespace treadle::testing
