#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/search/pruner.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Pruner must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Pruners, PrunerContract, ::testing::Values(
///         PrunerCase{"Median", [] { return plugin().make<Pruner>("median"); }}), CaseName());
namespace treadle::testing {

struct PrunerCase {
  std::string name;
  std::function<std::unique_ptr<Pruner>()> make;
  /// It pauses trials, and goes on with some of them.
  bool pauses = false;
  /// Trials that are worse than others are trained for less.
  bool compares = true;
  /// It leaves one of several trials, however bad they are.
  bool completes = true;
  /// It starts as many trials as the study may have; a population ends when its members have.
  bool starts_all = true;
};

TREADLE_CONTRACT_SUITE(PrunerContract, PrunerCase);

}  // namespace treadle::testing
