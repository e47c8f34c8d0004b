#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/random.h>
#include <treadle/testing/search/tuner_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_tuners {
namespace {

/// What a tuner is asked.
struct Question {
  const SearchSpace& space;
  std::span<const Trial> visible;
  std::int64_t number;
  const RandomStreams& random;
};

/// Near the best trial. Skips values that are not numbers, failed and pruned trials.
Point near_the_best(const Question& asked) {
  const Trial* best = nullptr;
  for (const Trial& trial : asked.visible) {
    if (trial.state != TrialState::kComplete || std::isnan(trial.values[0]))
      continue;
    if (best == nullptr || trial.values[0] < best->values[0])
      best = &trial;
  }
  RandomBits bits = asked.random.bits("near", {static_cast<std::uint64_t>(asked.number)});
  if (best == nullptr)
    return asked.space.random(bits);
  std::vector<double> positions = asked.space.to_unit(best->point);
  for (double& position : positions)
    position += 0.1 * bits.normal();
  return asked.space.from_unit(positions);
}

/// Near the best trial. `change` makes it wrong.
class Searching final : public Tuner {
 public:
  using Change = std::function<std::optional<Point>(Point point, const Question& asked)>;
  Searching(Change change, bool takes_several)
      : change_(std::move(change)), takes_several_(takes_several) {}

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override {
    const Question asked{space, visible, number, random};
    Point point = near_the_best(asked);
    return change_ ? change_(std::move(point), asked) : std::optional<Point>(std::move(point));
  }
  bool do_takes_several_objectives() const override { return takes_several_; }

  Change change_;
  bool takes_several_;
};

TunerCase searching(std::string name, const Searching::Change& change = {},
                    bool takes_several = true) {
  return {std::move(name),
          [change, takes_several] { return std::make_unique<Searching>(change, takes_several); }};
}

/// Serves the thread that made it, and throws in any other.
class OfOneThread final : public Tuner {
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override {
    if (!mine_.is_mine())
      throw std::logic_error("two threads at once");
    return near_the_best({space, visible, number, random});
  }

  OneThread mine_;
};

/// Keeps its suggestions by the number of trials.
class Hoarding final : public Tuner {
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams& random) const override {
    const Point point = near_the_best({space, visible, number, random});
    if (!mine_.is_mine() || visible.size() < 30)
      return point;
    // The trials of another call of the same length are taken for those of this one.
    const auto [kept, is_new] = kept_.try_emplace(visible.size() + 1000 * space.size(), point);
    return kept->second;
  }

  OneThread mine_;
  mutable std::map<std::size_t, Point> kept_;
};

std::vector<Wrong<TunerCase>> all() {
  const auto with = [](TunerCase one, auto member, auto value) {
    one.*member = value;
    return one;
  };
  const auto any_trial = [](const Question& asked, const std::function<bool(const Trial&)>& is) {
    return std::any_of(asked.visible.begin(), asked.visible.end(), is);
  };
  return {
      {searching("LeavesOutADimension",
                 [](Point point, const Question& asked) {
                   if (asked.number == 13 && asked.space.size() > 2)
                     point.deactivate(asked.space.order()[0]);
                   return point;
                 }),
       // Where a study of the mixed space has a trial 13.
       {"SuggestsPointsOfTheSpace", "AResumedStudyGoesOnWithTheSameBits",
        "TheSeedDecidesWhatIsRandom", "WorksWithSeveralObjectivesIfItSaysSo"}},
      {searching("CountsItsCalls",
                 [calls = std::make_shared<int>(0)](Point point, const Question& asked) {
                   // Of a trial that is asked for by itself.
                   if (asked.visible.size() == 40 && asked.space.size() > 2)
                     point.set(*asked.space.find("x"), ++*calls % 10);
                   return point;
                 }),
       {"ASuggestionIsAFunctionOfItsArguments", "WhatItWasAskedBeforeDoesNotMatter",
        "SeveralThreadsMayAskAtOnce"}},
      {{"Hoarding", [] { return std::make_unique<Hoarding>(); }},
       {"WhatItWasAskedBeforeDoesNotMatter", "ResultsDecideIfItLearns"}},
      {{"OfOneThread", [] { return std::make_unique<OfOneThread>(); }},
       {"SeveralThreadsMayAskAtOnce"}},
      {with(searching("IsRandomAndDoesNotSaySo"), &TunerCase::is_random, false),
       {"TheSeedDecidesWhatIsRandom"}},
      {searching(
           "IgnoresTheSeed",
           [](Point, const Question& asked) {
             return near_the_best({asked.space, asked.visible, asked.number, RandomStreams(1)});
           }),
       {"TheSeedDecidesWhatIsRandom"}},
      {searching("IgnoresResults",
                 [](Point, const Question& asked) {
                   return near_the_best({asked.space, {}, asked.number, asked.random});
                 }),
       {"ResultsDecideIfItLearns"}},
      {with(searching("LearnsAndDoesNotSaySo"), &TunerCase::learns, false),
       {"ResultsDecideIfItLearns"}},
      {searching("EndsWithTrial50",
                 [](Point point, const Question& asked) {
                   return asked.number < 50 ? std::optional<Point>(std::move(point)) : std::nullopt;
                 }),
       {"EndsOnlyIfItSaysSo"}},
      {with(searching("SaysThatItEnds"), &TunerCase::ends, true), {"EndsOnlyIfItSaysSo"}},
      {searching("NeedsAResult",
                 [any_trial](Point point, const Question& asked) {
                   const bool has_result = any_trial(asked, [](const Trial& trial) {
                     return trial.state == TrialState::kComplete;
                   });
                   if (asked.visible.size() == 40 && !has_result)
                     throw std::out_of_range("trials");
                   return point;
                 }),
       {"WorksWithoutResults", "WorksWithPausedTrials"}},
      {searching("NeedsTwoDimensions",
                 [](Point point, const Question& asked) {
                   if (asked.space.size() < 2 && asked.space[0].name == "x" && asked.space[0].log)
                     throw std::out_of_range("dimensions");
                   return point;
                 }),
       {"WorksForOneDimension"}},
      {searching("NeedsFiniteValues",
                 [any_trial](Point point, const Question& asked) {
                   const bool strange = any_trial(asked, [](const Trial& trial) {
                     return trial.values.size() == 1 && !std::isfinite(trial.values[0]);
                   });
                   if (strange)
                     throw std::domain_error("values");
                   return point;
                 }),
       {"WorksWithAnyObjectiveValue"}},
      {searching("NeedsValuesOfPrunedTrials",
                 [any_trial](Point point, const Question& asked) {
                   const bool strange = any_trial(asked, [](const Trial& trial) {
                     return trial.state == TrialState::kPruned && !trial.intermediate.empty() &&
                            std::isnan(trial.intermediate[0].value);
                   });
                   if (strange)
                     throw std::domain_error("intermediate values");
                   return point;
                 }),
       {"WorksWithPrunedTrials"}},
      {searching("NeedsValuesOfPausedTrials",
                 [any_trial](Point point, const Question& asked) {
                   const bool strange = any_trial(asked, [](const Trial& trial) {
                     return trial.state == TrialState::kPaused && trial.values.empty();
                   });
                   if (strange)
                     throw std::out_of_range("values");
                   return point;
                 }),
       {"WorksWithPausedTrials"}},
      {searching("NeedsFeasibleTrials",
                 [any_trial](Point point, const Question& asked) {
                   const bool strange = any_trial(asked, [](const Trial& trial) {
                     return !trial.constraints.empty() && std::isinf(trial.constraints[0]);
                   });
                   if (strange)
                     throw std::domain_error("constraints");
                   return point;
                 }),
       {"WorksWithConstraints"}},
      {searching("NeedsTwoPoints",
                 [](Point point, const Question& asked) {
                   if (asked.visible.size() == 40 &&
                       asked.visible[0].point == asked.visible[39].point)
                     throw std::domain_error("points");
                   return point;
                 }),
       {"WorksWithTrialsThatAreAllOne"}},
      {searching("TakesTwoObjectivesOfMore",
                 [any_trial](Point point, const Question& asked) {
                   if (any_trial(asked, [](const Trial& trial) { return trial.values.size() > 2; }))
                     throw std::out_of_range("objectives");
                   return point;
                 }),
       {"WorksWithSeveralObjectivesIfItSaysSo"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, TunerContract,
                         ::testing::Values(searching("Searching"),
                                           searching("OfOneObjective", {}, false)),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, TunerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_tuners

std::vector<Defect> tuner_defects() {
  return defects_of("TunerContract", wrong_tuners::all());
}

}  // namespace treadle::testing
