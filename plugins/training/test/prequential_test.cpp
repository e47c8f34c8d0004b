#include "prequential.h"

#include <gtest/gtest.h>

#include <treadle/testing/training/training_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Prequential, TrainingContract,
                         ::testing::Values(TrainingCase{
                             .name = "Prequential",
                             .make =
                                 [] { return std::make_unique<PrequentialTraining>(Config()); }}),
                         CaseName());

TEST(PrequentialTest, TheFirstLossIsThatOfTheUntrainedModel) {
  Rehearsal untrained({.has_validation = false});
  const double expected = untrained.loss_on(untrained.training());
  Rehearsal trained(std::make_unique<PrequentialTraining>(Config()),
                    {.epochs = 1, .has_validation = false, .learning_rate = 1e-12});
  RecordingContext context;

  trained.train(context);

  // With next to no learning rate every batch is predicted by the same model.
  ASSERT_EQ(context.epochs().size(), 1U);
  EXPECT_NEAR(context.epochs()[0].val_loss.value(), expected, 1e-6 * expected);
}

}  // namespace
}  // namespace treadle::testing
