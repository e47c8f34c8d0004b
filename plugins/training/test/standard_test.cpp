#include "standard.h"

#include <treadle/testing/training/training_contract.h>

namespace treadle::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Standard, TrainingContract,
                         ::testing::Values(TrainingCase{
                             "Standard",
                             [] { return std::make_unique<StandardTraining>(Config()); }}),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
