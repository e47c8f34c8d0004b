// How "shards": "auto" cuts: by work, for models of both kinds.
#include "load/shard_count.h"

#include <gmock/gmock.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model.h>
#include <treadle/core/model_abilities.h>

namespace treadle::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two dense layers, which it tells. `uses`: how often it uses a weight for a row, as a convolution
/// does.
class Told final : public Model, public EstimatesWork {
 public:
  Told(std::int64_t width, bool has_batch_norm, double uses) : width_(width), uses_(uses) {
    register_module("first", torch::nn::Linear(width, width));
    if (has_batch_norm)
      register_module("norm", torch::nn::BatchNorm1d(width));
    register_module("second", torch::nn::Linear(width, width));
  }
  void forward(const Inputs&, Outputs&, ForwardContext&) override {}
  std::optional<RowWork> training_work() const override {
    const auto width = static_cast<double>(width_);
    return RowWork{12 * width * width * uses_, 32 * width};
  }

 private:
  std::int64_t width_;
  double uses_;
};

std::shared_ptr<Model> model_of(std::int64_t width, bool has_batch_norm = false, double uses = 1) {
  return std::make_shared<Told>(width, has_batch_norm, uses);
}

TEST(Shards, OfASmallStepAreOne) {
  EXPECT_EQ(choose_shards(*model_of(64), 32).shards, 1);
  EXPECT_EQ(choose_shards(*model_of(64), 256).shards, 1) << "rows alone do not make it large";
}

TEST(Shards, GrowWithTheWorkOfAStep) {
  EXPECT_EQ(choose_shards(*model_of(64), 100'000).shards, 8) << "at most";
  const std::int64_t some = choose_shards(*model_of(512), 64).shards;
  EXPECT_GT(some, 1) << "a small batch of a heavy network";
  EXPECT_LT(some, choose_shards(*model_of(512), 256).shards);
  EXPECT_EQ(choose_shards(*model_of(8), 1).shards, 1);
}

TEST(Shards, AreNoMoreThanPayForTheirGradients) {
  // 4 ms of work, but the gradients of 34 MB of weights take 10 ms.
  EXPECT_EQ(choose_shards(*model_of(2048), 4).shards, 1);
  EXPECT_GT(choose_shards(*model_of(2048), 256).shards, 1);
}

TEST(Shards, OfAModelThatDoesNotTellGoByItsParameters) {
  const auto model = adapt(torch::nn::Linear(1024, 1024).ptr());

  EXPECT_EQ(choose_shards(*model, 8).shards, 1);
  const ShardChoice large = choose_shards(*model, 512);
  EXPECT_GT(large.shards, 1);
  EXPECT_THAT(large.reason, HasSubstr("by its parameters"));
  EXPECT_THAT(choose_shards(*model_of(512), 256).reason, Not(HasSubstr("parameters")));
}

TEST(Shards, SayWhatBatchNormalizationSees) {
  const ShardChoice choice = choose_shards(*model_of(512, /*has_batch_norm=*/true), 256);

  ASSERT_GT(choice.shards, 1);
  EXPECT_THAT(choice.reason,
              HasSubstr("batch normalization sees " + std::to_string(256 / choice.shards) +
                        " rows at a time instead of 256"));
  EXPECT_THAT(choose_shards(*model_of(512), 256).reason, Not(HasSubstr("batch norm")));
  EXPECT_THAT(choose_shards(*model_of(64, true), 32).reason, Not(HasSubstr("batch norm")))
      << "a step in one piece";
  EXPECT_EQ(choose_shards(*model_of(64, false, 4096), 6).shards, 6) << "one row is enough work";
  EXPECT_EQ(choose_shards(*model_of(64, true, 4096), 6).shards, 3) << "but not for a norm";
}

}  // namespace
}  // namespace treadle::internal
