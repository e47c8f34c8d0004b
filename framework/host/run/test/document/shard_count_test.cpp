// How "shards": "auto" cuts: by work, for models of both kinds.
#include "document/shard_count.h"

#include <gmock/gmock.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model/abilities/estimates_work.h>
#include <treadle/core/model/model.h>

namespace treadle::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two dense layers, which it tells. `uses`: how often it uses a weight for a row, as a convolution
/// does; `calls`: of operators in a step.
class Told final : public Model, public EstimatesWork {
 public:
  Told(std::int64_t width, bool has_batch_norm, double uses, double calls)
      : width_(width), uses_(uses), calls_(calls) {
    register_module("first", torch::nn::Linear(width, width));
    if (has_batch_norm)
      register_module("norm", torch::nn::BatchNorm1d(width));
    register_module("second", torch::nn::Linear(width, width));
  }
  void forward(const Inputs&, Outputs&, ForwardContext&) override {}
  std::optional<StepWork> training_work() const override {
    const auto width = static_cast<double>(width_);
    return StepWork{12 * width * width * uses_, 32 * width, calls_};
  }

 private:
  std::int64_t width_;
  double uses_;
  double calls_;
};

std::shared_ptr<Model> model_of(std::int64_t width, bool has_batch_norm = false, double uses = 1,
                                double calls = 40) {
  return std::make_shared<Told>(width, has_batch_norm, uses, calls);
}

TEST(Shards, OfASmallStepAreOne) {
  EXPECT_EQ(choose_shards(*model_of(64), 32).shards, 1);
  EXPECT_EQ(choose_shards(*model_of(16), 256).shards, 1) << "rows alone do not make it large";
}

TEST(Shards, GrowWithTheWorkOfAStep) {
  std::int64_t before = 1;
  for (const std::int64_t rows : {16, 64, 256, 1024, 4096, 100'000}) {
    const std::int64_t shards = choose_shards(*model_of(512), rows).shards;
    EXPECT_GE(shards, before);
    before = shards;
  }
  EXPECT_EQ(before, 8) << "at most";
  EXPECT_EQ(choose_shards(*model_of(512), 64).shards, 2) << "a small batch of a heavy network";
  EXPECT_EQ(choose_shards(*model_of(8), 1).shards, 1);
}

TEST(Shards, AreNoMoreThanPayForTheirGradients) {
  // 4 ms of work, but the gradients of 34 MB of weights take 10 ms.
  EXPECT_EQ(choose_shards(*model_of(2048), 4).shards, 1);
  EXPECT_GT(choose_shards(*model_of(2048), 256).shards, 1);
}

// With two workers n shards take ceil(n / 2) rounds of calls: of 11 000 calls, as of a gru over 96
// steps, 10 ms each.
TEST(Shards, AreTwoWhereEachRepeatsManyCalls) {
  EXPECT_EQ(choose_shards(*model_of(64, false, 160, 11'000), 64).shards, 2);
  EXPECT_EQ(choose_shards(*model_of(64, false, 160, 40), 512).shards, 8)
      << "the same work in a few";
  EXPECT_EQ(choose_shards(*model_of(64, false, 1, 11'000), 64).shards, 1) << "nothing to divide";
}

TEST(Shards, OfAModelThatDoesNotTellGoByItsParameters) {
  const auto model = adapt(torch::nn::Linear(1024, 1024).ptr());

  EXPECT_EQ(choose_shards(*model, 8).shards, 1);
  const ShardChoice large = choose_shards(*model, 512);
  EXPECT_GT(large.shards, 1);
  EXPECT_THAT(large.reason, HasSubstr("by its parameters"));
  EXPECT_THAT(choose_shards(*model_of(512), 256).reason, Not(HasSubstr("parameters")));
}

TEST(Shards, LeaveBatchNormalizationRowsAndSayHowMany) {
  const ShardChoice choice = choose_shards(*model_of(512, /*has_batch_norm=*/true), 256);

  ASSERT_GT(choice.shards, 1);
  EXPECT_THAT(choice.reason,
              HasSubstr("batch normalization sees " + std::to_string(256 / choice.shards) +
                        " rows at a time instead of 256"));
  EXPECT_THAT(choose_shards(*model_of(512), 256).reason, Not(HasSubstr("batch norm")));
  EXPECT_THAT(choose_shards(*model_of(64, true), 32).reason, Not(HasSubstr("batch norm")))
      << "a step in one piece";
  for (const std::int64_t rows : {6, 30, 32, 40, 64, 100, 200, 300}) {
    const std::int64_t shards = choose_shards(*model_of(64, true, 40'000), rows).shards;
    EXPECT_EQ(shards, rows < 32 ? 1 : rows < 64 ? 2 : rows < 128 ? 4 : 8) << rows;
    EXPECT_GE(choose_shards(*model_of(64, false, 40'000), rows).shards, shards);
  }
}

}  // namespace
}  // namespace treadle::internal
