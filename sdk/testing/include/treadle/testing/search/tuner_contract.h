#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/search/search_space.h>
#include <treadle/search/tuner.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every Tuner must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Tuners, TunerContract, ::testing::Values(
///         TunerCase{"Random", [] { return plugin().make<Tuner>("random"); }}), CaseName());
namespace treadle::testing {

struct TunerCase {
  std::string name;
  std::function<std::unique_ptr<Tuner>()> make;
  /// Another seed gives other points.
  bool is_random = true;
  /// Other results of the trials give other points.
  bool learns = true;
  /// It has no more points after some number of them.
  bool ends = false;
  /// How many trials a study has before the claims are tested: more than the tuner takes at random.
  std::int64_t trials = 40;
};

/// How long a result stays unseen in the studies of tests: suggestion k sees the results of trials
/// <= k - kLag.
inline constexpr std::int64_t kLag = 4;

/// Runs a study of `trials` trials without a framework: `evaluate` fills in what the framework
/// would, state and values. Ends early when the tuner has no more points.
std::vector<Trial> run_study(const Tuner& tuner, const SearchSpace& space, std::int64_t trials,
                             std::uint64_t seed, const std::function<void(Trial&)>& evaluate,
                             std::int64_t lag = kLag);

/// A space with everything a space may have.
SearchSpace mixed_space();

/// The square of the distance from the middle of the unit cube.
double distance(const SearchSpace& space, const Point& point);

TREADLE_CONTRACT_SUITE(TunerContract, TunerCase);

}  // namespace treadle::testing
