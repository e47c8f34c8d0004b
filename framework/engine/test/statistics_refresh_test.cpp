#include <treadle/engine/statistics_refresh.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {
namespace {

class Normalizing : public Model {
 public:
  explicit Normalizing(double dropout = 0) {
    dropout_ = register_module("dropout", torch::nn::Dropout(dropout));
    norm = register_module("norm",
                           torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(3).momentum(0.3)));
    to(at::kDouble);
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = norm->forward(dropout_->forward(inputs[0]));
  }
  torch::nn::BatchNorm1d norm{nullptr};

 private:
  torch::nn::Dropout dropout_{nullptr};
};

/// Batches of inputs alone.
BatchList batches_of(const std::vector<at::Tensor>& inputs) {
  std::vector<Batch> batches;
  for (const at::Tensor& input : inputs)
    batches.emplace_back().inputs = {input};
  return BatchList(std::move(batches));
}

std::vector<at::Tensor> three_batches() {
  const at::Generator generator = make_generator(9);
  std::vector<at::Tensor> inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(at::randn({8, 3}, generator, at::kDouble).mul(i + 1));
  return inputs;
}

void refresh(Model& model, std::stop_token stop = {}, std::uint64_t seed = 1) {
  BatchList stream = batches_of(three_batches());
  refresh_statistics(model, 1, stream, seed, stop);
}

// torch.optim.swa_utils.update_bn: statistics reset, momentum None, one forward a batch.
TEST(StatisticsRefresh, CountsEachBatchTheSame) {
  Normalizing model;
  const at::NoGradGuard no_gradients;
  model.norm->running_mean.fill_(77);

  refresh(model);

  std::vector<at::Tensor> means;
  std::vector<at::Tensor> variances;
  for (const at::Tensor& input : three_batches()) {
    means.push_back(input.mean(0));
    variances.push_back(at::var(input, at::IntArrayRef{0}, /*unbiased=*/true));
  }
  const auto worst = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  EXPECT_LT(worst(model.norm->running_mean, at::stack(means).mean(0)), 1e-14);
  EXPECT_LT(worst(model.norm->running_var, at::stack(variances).mean(0)), 1e-13);
}

TEST(StatisticsRefresh, LeavesModesMomentumAndWeightsAsTheyWere) {
  Normalizing model;
  model.eval();
  model.norm->train();  // a mode of its own
  const at::Tensor weight = model.norm->weight.detach().clone();

  refresh(model);

  EXPECT_FALSE(model.is_training());
  EXPECT_TRUE(model.norm->is_training());
  EXPECT_EQ(model.norm->options.momentum().value(), 0.3);
  EXPECT_TRUE(at::equal(model.norm->weight.detach(), weight));
}

TEST(StatisticsRefresh, DrawsFromItsSeed) {
  const auto mean_by = [](std::uint64_t seed) {
    Normalizing model(0.5);
    refresh(model, {}, seed);
    return model.norm->running_mean.clone();
  };
  EXPECT_TRUE(at::equal(mean_by(4), mean_by(4)));
  EXPECT_FALSE(at::equal(mean_by(4), mean_by(5)));
}

TEST(StatisticsRefresh, EndsWhenAskedTo) {
  Normalizing model;
  std::stop_source stop;
  stop.request_stop();

  EXPECT_THROW(refresh(model, stop.get_token()), Interrupted);
  EXPECT_EQ(model.norm->options.momentum().value(), 0.3);
}

TEST(StatisticsRefresh, IsForModelsThatHaveSuchLayers) {
  Normalizing model;
  EXPECT_TRUE(gathers_statistics(model));

  const auto linear = adapt(std::make_shared<torch::nn::LinearImpl>(3, 1));
  EXPECT_FALSE(gathers_statistics(*linear));
  const auto without_statistics = adapt(std::make_shared<torch::nn::BatchNorm2dImpl>(
      torch::nn::BatchNorm2dOptions(3).track_running_stats(false)));
  EXPECT_FALSE(gathers_statistics(*without_statistics));
}

}  // namespace
}  // namespace treadle::engine
