// Regrets beside those of Optuna (README.md), printed, and the time that a suggestion takes. Not
// run by default:
//   treadle-plugin-tuners-tests --gtest_also_run_disabled_tests --gtest_filter='Regrets.*'
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/search/tuner_contract.h>

#include "functions.h"
#include "made.h"

namespace treadle::tuners {
namespace {

using nlohmann::json;

double milliseconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

TEST(Regrets, DISABLED_Table) {
  for (const TestFunction& function : test_functions()) {
    // A Gaussian process takes some 30 ms a trial.
    const std::vector<std::pair<std::string, std::uint64_t>> tuners = {
        {"random", 20}, {"tpe", 20}, {"cma_es", 20}, {"gp", 5}};
    for (const auto& [name, seeds] : tuners) {
      for (const std::int64_t lag : {1, 4}) {
        const auto tuner = make(name);
        const double start = milliseconds_of_thread();
        const auto all = regrets(*tuner, function, 100, seeds, lag);
        std::cout << function.name << ' ' << name << " lag " << lag << ", " << seeds
                  << " seeds: median " << quantile(all, 0.5) << " [" << quantile(all, 0.25) << ' '
                  << quantile(all, 0.75) << "], "
                  << (milliseconds_of_thread() - start) / static_cast<double>(100 * seeds)
                  << " ms a trial\n";
      }
    }
  }
}

// One suggestion of TPE in 40 dimensions after 1000 trials.
TEST(Regrets, DISABLED_Speed) {
  const TestFunction function = sphere(40);
  const auto tpe = make("tpe");
  std::vector<double> took;
  double start = 0;
  testing::run_study(*tpe, function.space(), 1200, 1, [&](Trial& trial) {
    if (trial.number >= 1000)
      took.push_back(milliseconds_of_thread() - start);
    trial.state = TrialState::kComplete;
    trial.values = {function.at(trial.point)};
    start = milliseconds_of_thread();
  });
  std::cout << "TPE, 40 dimensions, 1000 trials: median " << quantile(took, 0.5) << " ms, least "
            << quantile(took, 0) << " ms\n";
}

}  // namespace
}  // namespace treadle::tuners
