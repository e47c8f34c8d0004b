// Population-based training by the toy of its paper, whose weights this test trains itself.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/search/pruner.h>

#include "made.h"

namespace treadle::pruners {
namespace {

/// M. Jaderberg et al., 2017, section 4.1: Q = 1.2 - (a² + b²) is maximized by the gradient of
/// 1.2 - (h0 a² + h1 b²), from a = b = 0.9. Without a change of h, a member with h = (1, 0) or
/// (0, 1) cannot get beyond 1.2 - 0.81.
struct Weights {
  double a = 0.9;
  double b = 0.9;

  void step(double h0, double h1) {
    constexpr double kRate = 0.05;
    a -= kRate * 2 * h0 * a;
    b -= kRate * 2 * h1 * b;
  }
  double loss() const { return a * a + b * b - 1.2; }
};

/// A study of that toy as the framework runs one, whose jobs end at once.
class Toy {
 public:
  Toy(const Pruner& pruner, std::int64_t max_trials) : pruner_(pruner), max_trials_(max_trials) {}

  std::vector<Trial> run() {
    for (;;) {
      const bool may_start = static_cast<std::int64_t>(trials_.size()) < max_trials_;
      const NextJob job = pruner_.next_job({.trials = trials_,
                                            .max_trials = max_trials_,
                                            .may_start = may_start,
                                            .space = &space_,
                                            .random = &random_});
      if (job.kind == NextJob::Kind::kWait || (job.kind == NextJob::Kind::kStart && !may_start))
        return trials_;
      jobs_.push_back(job);
      if (job.kind == NextJob::Kind::kPrune) {
        trials_[static_cast<std::size_t>(job.trial)].state = TrialState::kPruned;
      } else {
        train(job.kind == NextJob::Kind::kStart ? start(job) : job.trial);
      }
    }
  }

  const std::vector<NextJob>& jobs() const { return jobs_; }
  const SearchSpace& space() const { return space_; }

 private:
  static constexpr std::int64_t kEpochs = 40;

  std::int64_t start(const NextJob& job) {
    const auto number = static_cast<std::int64_t>(trials_.size());
    Trial trial;
    trial.number = number;
    if (job.trial >= 0) {
      weights_[number] = weights_.at(job.trial);
      trial.intermediate = trials_[static_cast<std::size_t>(job.trial)].intermediate;
      trial.copied_from = job.trial;
      trial.point = job.point.value();
    } else {  // the two of the paper, in turns
      weights_[number] = {};
      trial.point = Point(2);
      trial.point.set(0, number % 2 == 0 ? 1 : 0);
      trial.point.set(1, number % 2 == 0 ? 0 : 1);
    }
    trials_.push_back(std::move(trial));
    return number;
  }

  void train(std::int64_t number) {
    Trial& trial = trials_[static_cast<std::size_t>(number)];
    std::int64_t epoch = trial.intermediate.empty() ? 0 : trial.intermediate.back().step;
    const std::optional<std::int64_t> pause = pruner_.next_step(number, epoch);
    while (epoch < kEpochs && epoch < pause.value_or(kEpochs)) {
      weights_[number].step(trial.point[0], trial.point[1]);
      trial.intermediate.push_back({++epoch, weights_[number].loss()});
    }
    trial.state = epoch < kEpochs ? TrialState::kPaused : TrialState::kComplete;
    if (trial.state == TrialState::kComplete) {
      trial.values = {trial.intermediate.back().value};
      trial.intermediate.pop_back();  // after its last epoch a trial is not judged
    }
  }

  const Pruner& pruner_;
  const std::int64_t max_trials_;
  const SearchSpace space_{{uniform("h0", 0, 1), uniform("h1", 0, 1)}};
  const RandomStreams random_{7};
  std::vector<Trial> trials_;
  std::map<std::int64_t, Weights> weights_;
  std::vector<NextJob> jobs_;
};

double best_of(const std::vector<Trial>& trials) {
  double best = INFINITY;
  for (const Trial& trial : trials) {
    if (trial.state == TrialState::kComplete)
      best = std::min(best, trial.values[0]);
  }
  return best;
}

TEST(PopulationBased, FindsWhatNoMemberOfItsPapersToyFindsAlone) {
  const auto alone = make("population_based", {{"population", 4}, {"quantile_fraction", 0.0}});
  const auto pruner = make("population_based", {{"population", 4}, {"interval", 4}});

  EXPECT_GT(best_of(Toy(*alone, 100).run()), -(1.2 - 0.81));
  EXPECT_LT(best_of(Toy(*pruner, 100).run()), -1.1);
}

TEST(PopulationBased, ReplacesTheWorstByCopiesOfTheBest) {
  const auto pruner = make("population_based", {{"population", 4}, {"interval", 4}});
  Toy toy(*pruner, 100);

  const std::vector<Trial> trials = toy.run();

  // Four members, then after each 4 of 40 epochs, but the last, one more.
  EXPECT_EQ(trials.size(), 4U + 9U);
  for (std::size_t i = 4; i < trials.size(); ++i) {
    const auto copied = static_cast<std::size_t>(trials[i].copied_from.value());
    const std::int64_t epoch = 4 * static_cast<std::int64_t>(i - 3);
    const auto value_at = [&](const Trial& trial) {
      return trial.intermediate[static_cast<std::size_t>(epoch - 1)].value;
    };
    EXPECT_EQ(value_at(trials[i]), value_at(trials[copied]));
    for (const Trial& other : trials) {
      if (other.number < static_cast<std::int64_t>(i) &&
          static_cast<std::int64_t>(other.intermediate.size()) >= epoch) {
        EXPECT_GE(value_at(other), value_at(trials[copied])) << "trial " << i;
      }
    }
    EXPECT_TRUE(toy.space().contains(trials[i].point));
    EXPECT_FALSE(trials[i].point == trials[copied].point);
  }
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(),
                          [](const Trial& trial) { return trial.state == TrialState::kPruned; }),
            9);
}

TEST(PopulationBased, GoesOnAsItIsWhereNoTrialMayStart) {
  const auto pruner = make("population_based", {{"population", 4}, {"interval", 4}});

  const std::vector<Trial> trials = Toy(*pruner, 6).run();

  EXPECT_EQ(trials.size(), 6U);
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(),
                          [](const Trial& trial) { return trial.state == TrialState::kComplete; }),
            4);
}

}  // namespace
}  // namespace treadle::pruners
