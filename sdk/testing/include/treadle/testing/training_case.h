#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <treadle/testing/case_name.h>
#include <treadle/testing/rehearsal.h>
#include <treadle/testing/whole_training.h>

namespace treadle::testing {

struct TrainingCase {
  std::string name;
  /// A new object each time, of the same configuration.
  std::function<std::unique_ptr<TrainingWorkflow>()> make;
  /// Its training may be over before the planned epochs are.
  bool may_stop_early = false;
  /// It tests each batch before it trains on it: `x-treadle-tests-first`. Without validation rows.
  bool tests_first = false;
};

class TrainingContract : public ::testing::TestWithParam<TrainingCase> {
 protected:
  static std::unique_ptr<Rehearsal> rehearsal(Rehearsed rehearsed = {}) {
    rehearsed.has_validation = rehearsed.has_validation && !GetParam().tests_first;
    return std::make_unique<Rehearsal>(GetParam().make(), rehearsed);
  }
};

}  // namespace treadle::testing
