// A training step beside the loop that people write by hand: same initial weights, same batches,
// same losses.
#include <cmath>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <treadle/base/random.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/training_step.h>
#include <treadle/host/run/runtime.h>
#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

struct Peer {
  const char* optimizer;
  nlohmann::json parameters;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> make;
};

const Peer kPeers[] = {
    {"adam",
     {{"learning_rate", 0.01}, {"weight_decay", 0.001}},
     [](std::vector<at::Tensor> parameters) {
       return std::make_unique<torch::optim::Adam>(
           parameters, torch::optim::AdamOptions(0.01).weight_decay(0.001));
     }},
    {"sgd",
     {{"learning_rate", 0.05}, {"momentum", 0.9}},
     [](std::vector<at::Tensor> parameters) {
       return std::make_unique<torch::optim::SGD>(parameters,
                                                  torch::optim::SGDOptions(0.05).momentum(0.9));
     }},
};

struct Curves {
  std::vector<double> ours;
  std::vector<double> by_hand;
};

/// The loss of each step of both, on ragged batches: 500 rows do not divide by 32.
Curves train(const Runtime& runtime, const Peer& peer, at::ScalarType dtype, int steps) {
  const PluginRegistry& registry = runtime.registry();
  const auto data =
      registry.make<DataProvider>("moons", Config(nlohmann::json{{"rows", 500}, {"noise", 0.2}}));
  OpenRequest request;
  request.seed = 5;
  data->open(request);
  const RowReader& rows = *data->ask<RowReader>();
  const auto loss = registry.make<Loss>("cross_entropy");
  const auto provider =
      registry.make<ModelProvider>("mlp", Config(nlohmann::json{{"hidden", {64, 64}}}));
  const Objective objective({{.loss = loss.get()}}, rows.spec().targets);
  const engine::BatchPreparation preparation(rows.spec(), {}, {.dtype = dtype});
  const ModelSpec spec{preparation.spec().inputs, objective.outputs(), rows.spec().targets, dtype};
  const auto make_model = [&] {
    const TaskRandom random(9);
    return provider->create(spec);
  };
  const auto model = make_model();
  const auto other = make_model();
  const auto optimizer = registry.make<Optimizer>(peer.optimizer, Config(peer.parameters));
  const auto peer_optimizer = peer.make(other->parameters());

  Curves curves;
  engine::ThreadBudget budget(2);
  budget.run([&] {
    std::vector<std::int64_t> all(500);
    std::iota(all.begin(), all.end(), 0);
    engine::BatchPipeline source(rows, all, preparation, {.batch_size = 32, .shuffle = true},
                                 RandomStreams(1));
    engine::TrainingStep step(*model, objective, *optimizer);
    for (std::int64_t epoch = 0; static_cast<int>(curves.ours.size()) < steps; ++epoch) {
      const auto stream = source.epoch(epoch);
      Batch batch;
      while (static_cast<int>(curves.ours.size()) < steps && stream->next(batch)) {
        step.clear_totals();
        step.run(batch, static_cast<std::int64_t>(curves.ours.size()) + 1,
                 optimizer->learning_rate(), 0);
        curves.ours.push_back(step.totals().value());

        peer_optimizer->zero_grad();
        Outputs outputs(1);
        ForwardContext context;
        other->forward(batch.inputs, outputs, context);
        const at::Tensor mean = torch::nn::functional::cross_entropy(outputs[0], batch.targets[0]);
        mean.backward();
        peer_optimizer->step();
        curves.by_hand.push_back(mean.item<double>());
      }
    }
  });
  return curves;
}

TEST(OneShard, HasTheLossesOfTheLoopByHandInFloat64) {
  const Runtime runtime;
  for (const Peer& peer : kPeers) {
    const Curves curves = train(runtime, peer, at::kDouble, 200);
    ASSERT_EQ(curves.ours.size(), 200u);
    for (std::size_t i = 0; i < 200; ++i) {
      ASSERT_NEAR(curves.ours[i], curves.by_hand[i], 1e-9) << peer.optimizer << ", step " << i + 1;
    }
    EXPECT_LT(curves.ours.back(), curves.ours.front() / 2) << "it learned nothing";
  }
}

TEST(OneShard, HasTheLossesOfTheLoopByHandInFloat32) {
  const Runtime runtime;
  for (const Peer& peer : kPeers) {
    const Curves curves = train(runtime, peer, at::kFloat, 20);
    for (std::size_t i = 0; i < 20; ++i) {
      ASSERT_NEAR(curves.ours[i], curves.by_hand[i], 1e-4) << peer.optimizer << ", step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace treadle
