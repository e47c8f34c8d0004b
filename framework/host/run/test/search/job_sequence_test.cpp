#include "search/study/job_sequence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "search/study/best_trials.h"

// Studies of a few jobs are run in every order in which their jobs may end. Points, verdicts and
// jobs are functions of all visible results, so that a decision that sees another result shows.

namespace treadle::internal {
namespace {

using Trials = JobSequence::Trials;

constexpr std::int64_t kEpochs = 3;

std::int64_t last_step(const Trial& trial) {
  return trial.intermediate.empty() ? 0 : trial.intermediate.back().step;
}

double value_of(const Trial& trial, std::int64_t epoch) {
  return std::abs(trial.point[0] - 0.37) + 1 / static_cast<double>(epoch + 1);
}

/// A point between 0 and 1 that all visible results decide on, but no more points than `most`.
class SensitiveTuner final : public Tuner {
 public:
  explicit SensitiveTuner(std::int64_t most) : most_(most) {}

 private:
  std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                  std::int64_t number, const RandomStreams&) const override {
    if (number >= most_)
      return std::nullopt;
    double sum = 0.618 * static_cast<double>(number + 1);
    for (const Trial& trial : visible) {
      sum += 1.7 * static_cast<double>(trial.state) * static_cast<double>(trial.number + 1);
      for (const IntermediateValue& value : trial.intermediate)
        sum += value.value * static_cast<double>(value.step);
    }
    return space.from_unit(std::vector<double>{sum * 7.31 - std::floor(sum * 7.31)});
  }

  const std::int64_t most_;
};

/// Pauses trials after their first epochs; the others are functions.
class RungPruner final : public Pruner {
 public:
  using Next = std::function<NextJob(const StudyView&)>;
  explicit RungPruner(Next next) : next_(std::move(next)) {}

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after + 1 < kEpochs ? std::optional(after + 1) : std::nullopt;
  }
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override {
    const std::int64_t epoch = last_step(trial);
    std::int64_t better = 0;
    for (const Trial& other : study.trials) {
      for (const IntermediateValue& value : other.intermediate)
        better += value.step == epoch && value.value < trial.intermediate.back().value ? 1 : 0;
    }
    if (better > 1)
      return PrunerVerdict::kPrune;
    return epoch == 1 ? PrunerVerdict::kPause : PrunerVerdict::kContinue;
  }
  NextJob do_next_job(const StudyView& study) const override { return next_(study); }

  const Next next_;
};

std::vector<const Trial*> paused_by_value(const StudyView& study) {
  std::vector<const Trial*> paused;
  for (const Trial& trial : study.trials) {
    if (trial.state == TrialState::kPaused)
      paused.push_back(&trial);
  }
  std::sort(paused.begin(), paused.end(), [](const Trial* a, const Trial* b) {
    return a->intermediate.back().value < b->intermediate.back().value;
  });
  return paused;
}

/// Resumes the best of two paused trials, before it starts others.
NextJob resume_early(const StudyView& study) {
  const std::vector<const Trial*> paused = paused_by_value(study);
  if (paused.size() > 1)
    return {NextJob::Kind::kResume, paused.front()->number};
  return study.may_start ? NextJob() : NextJob{NextJob::Kind::kWait};
}

/// Waits for all trials, then resumes the best, and ends the worst.
NextJob wait_for_all(const StudyView& study) {
  const std::vector<const Trial*> paused = paused_by_value(study);
  if (study.may_start)
    return {};
  for (const Trial& trial : study.trials) {
    if (trial.state == TrialState::kRunning)
      return {NextJob::Kind::kWait};
  }
  if (paused.size() > 1)
    return {NextJob::Kind::kPrune, paused.back()->number};
  return paused.empty() ? NextJob{NextJob::Kind::kWait}
                        : NextJob{NextJob::Kind::kResume, paused.front()->number};
}

/// Starts copies of the best of two paused trials at another point, then ends the worst.
NextJob copy_best(const StudyView& study) {
  const std::vector<const Trial*> paused = paused_by_value(study);
  if (paused.size() < 2)
    return resume_early(study);
  const std::int64_t best = paused.front()->number;
  const bool is_copied = std::any_of(study.trials.begin(), study.trials.end(),
                                     [&](const Trial& trial) { return trial.copied_from == best; });
  if (is_copied || !study.may_start)
    return {NextJob::Kind::kPrune, paused.back()->number};
  return {NextJob::Kind::kStart, best,
          study.space->from_unit(std::vector<double>{paused.front()->point[0] * 0.9 + 0.05})};
}

SearchSettings settings_of(std::int64_t trials, std::int64_t parallel) {
  SearchSettings settings{.space = SearchSpace({uniform("x", 0, 1)}),
                          .tuner = std::make_shared<SensitiveTuner>(100),
                          .tuner_name = "sensitive",
                          .objectives = {"val_loss"}};
  settings.trials = trials;
  settings.parallel = parallel;
  return settings;
}

/// A job that has begun, and its trial then.
struct Running {
  StudyJob job;
  Trial trial;
};

/// Trains a trial to the end of its job. Those with points above 0.9 fail.
Trial trained(const JobSequence& sequence, Running running) {
  Trial& trial = running.trial;
  if (!running.job.trains()) {
    trial.state =
        running.job.kind == StudyJob::Kind::kPrune ? TrialState::kPruned : TrialState::kFailed;
    return trial;
  }
  auto step = sequence.next_evaluation(trial.number, last_step(trial));
  for (std::int64_t epoch = last_step(trial) + 1; epoch <= kEpochs; ++epoch) {
    if (epoch > 1 && trial.point[0] > 0.9) {
      trial.state = TrialState::kFailed;
      return trial;
    }
    trial.intermediate.push_back({epoch, value_of(trial, epoch)});
    if (epoch != step)
      continue;
    const PrunerVerdict verdict = sequence.evaluate(running.job.number, trial);
    if (verdict != PrunerVerdict::kContinue) {
      trial.state = verdict == PrunerVerdict::kPause ? TrialState::kPaused : TrialState::kPruned;
      return trial;
    }
    step = sequence.next_evaluation(trial.number, epoch);
  }
  trial.state = TrialState::kComplete;
  trial.values = {trial.intermediate.back().value};
  return trial;
}

std::string text_of(const Trials& trials) {
  std::string text;
  for (const Trial& trial : trials) {
    text += std::to_string(trial.number) + "RPCXF"[static_cast<int>(trial.state)] +
            std::to_string(trial.point[0]);
    for (const IntermediateValue& value : trial.intermediate)
      text += " " + std::to_string(value.step) + ":" + std::to_string(value.value);
    text += trial.copied_from ? " of " + std::to_string(*trial.copied_from) + "\n" : "\n";
  }
  return text;
}

/// Follows a study through every order in which its jobs may end.
class AllOrders {
 public:
  explicit AllOrders(SearchSettings settings, JobSequence::CancelQuery is_cancelled = nullptr)
      : settings_(std::move(settings)), is_cancelled_(std::move(is_cancelled)) {
    follow(JobSequence(settings_, RandomStreams(1), /*maximizes=*/false), {}, "");
    for (auto& [jobs, trials] : ended_early_)
      trials.insert(text_of(resumed(jobs)));
  }

  /// All that happened, of each order: they should be equal.
  const std::set<std::string>& studies() const { return studies_; }
  /// The trials of a study that is ended after so many jobs, of each moment to do so, and of a
  /// resumed study whose end is known.
  const std::map<std::size_t, std::set<std::string>>& ended_early() const { return ended_early_; }
  const Trials& trials() const { return trials_; }
  EndReason reason() const { return reason_; }
  std::int64_t orders() const { return orders_; }
  const std::set<StudyJob::Kind>& kinds() const { return kinds_; }

 private:
  Trials resumed(std::size_t jobs) const {
    JobSequence sequence(settings_, RandomStreams(1), /*maximizes=*/false);
    sequence.end_after(jobs);
    while (const std::optional<StudyJob> job = sequence.next(is_cancelled_)) {
      const Trial& trial = sequence.trials()[static_cast<std::size_t>(job->trial)];
      sequence.end(job->number, trained(sequence, {*job, trial}));
    }
    return sequence.final_trials();
  }

  void follow(JobSequence sequence, std::vector<Running> running, std::string jobs) {
    while (const std::optional<StudyJob> job = sequence.next(is_cancelled_)) {
      Trial trial = sequence.trials()[static_cast<std::size_t>(job->trial)];
      jobs +=
          std::to_string(static_cast<int>(job->kind)) + " of " + std::to_string(job->trial) + ", ";
      kinds_.insert(job->kind);
      if (job->trains())
        running.push_back({*job, std::move(trial)});
      else
        sequence.end(job->number, trained(sequence, {*job, std::move(trial)}));
    }
    EXPECT_LE(running.size(), static_cast<std::size_t>(settings_.parallel));
    JobSequence ended = sequence;
    ended.end_after(sequence.ended_from(0));
    EXPECT_TRUE(ended.is_over());
    ended_early_[sequence.ended_from(0)].insert(text_of(ended.final_trials()));
    if (running.empty()) {
      ASSERT_TRUE(sequence.is_over());
      trials_ = sequence.final_trials();
      reason_ = sequence.end_reason();
      studies_.insert(jobs + "\n" + text_of(trials_));
      ++orders_;
    }
    for (std::size_t next = 0; next < running.size(); ++next) {
      JobSequence then = sequence;
      std::vector<Running> others = running;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(next));
      then.end(running[next].job.number, trained(then, running[next]));
      follow(std::move(then), std::move(others), jobs);
    }
  }

  const SearchSettings settings_;
  const JobSequence::CancelQuery is_cancelled_;
  std::set<std::string> studies_;
  std::map<std::size_t, std::set<std::string>> ended_early_;
  std::set<StudyJob::Kind> kinds_;
  Trials trials_;
  EndReason reason_ = EndReason::kTrials;
  std::int64_t orders_ = 0;
};

struct SequenceCase {
  std::string name;
  RungPruner::Next pruner;  // null: none
  std::function<void(SearchSettings&)> change;
  EndReason reason;
};
std::ostream& operator<<(std::ostream& out, const SequenceCase& sequence) {
  return out << sequence.name;
}
class EveryOrder : public ::testing::TestWithParam<std::tuple<SequenceCase, int>> {};

TEST_P(EveryOrder, OfEndsGivesTheSameStudy) {
  const auto& [sequence, parallel] = GetParam();
  SearchSettings settings = settings_of(6, parallel);
  if (sequence.pruner)
    settings.pruner = std::make_shared<RungPruner>(sequence.pruner);
  sequence.change(settings);

  const AllOrders orders(settings);

  EXPECT_EQ(orders.studies().size(), 1U) << ::testing::PrintToString(orders.studies());
  EXPECT_EQ(orders.reason(), sequence.reason);
  EXPECT_EQ(orders.orders() > 1, parallel > 1);
  EXPECT_TRUE(best_complete(orders.trials())) << text_of(orders.trials());
  for (const auto& [jobs, trials] : orders.ended_early())
    EXPECT_EQ(trials.size(), 1U) << "ended after " << jobs
                                 << " jobs: " << ::testing::PrintToString(trials);
}

void as_it_is(SearchSettings&) {}

INSTANTIATE_TEST_SUITE_P(Studies, EveryOrder,
                         ::testing::Combine(
                             ::testing::Values(SequenceCase{"Plain", nullptr, as_it_is,
                                                            EndReason::kTrials},
                                               SequenceCase{"ResumesEarly", resume_early, as_it_is,
                                                            EndReason::kTrials},
                                               SequenceCase{"WaitsForAll", wait_for_all, as_it_is,
                                                            EndReason::kTrials},
                                               SequenceCase{"Copies", copy_best, as_it_is,
                                                            EndReason::kTrials},
                                               SequenceCase{"Exhausted", nullptr,
                                                            [](SearchSettings& settings) {
                                                              settings.tuner =
                                                                  std::make_shared<SensitiveTuner>(
                                                                      5);
                                                            },
                                                            EndReason::kSpace},
                                               SequenceCase{"ExhaustedWithPruner", resume_early,
                                                            [](SearchSettings& settings) {
                                                              settings.tuner =
                                                                  std::make_shared<SensitiveTuner>(
                                                                      5);
                                                            },
                                                            EndReason::kSpace},
                                               SequenceCase{"Impatient", nullptr,
                                                            [](SearchSettings& settings) {
                                                              settings.trials = 9;
                                                              settings.patience = 2;
                                                            },
                                                            EndReason::kPatience},
                                               SequenceCase{"Initial", nullptr,
                                                            [](SearchSettings& settings) {
                                                              settings.initial = {{0.5}, {0.95}};
                                                            },
                                                            EndReason::kTrials},
                                               SequenceCase{"StartsNoMore",
                                                            [](const StudyView& study) {
                                                              return study.trials.size() < 2
                                                                         ? NextJob()
                                                                         : NextJob{NextJob::Kind::
                                                                                       kWait};
                                                            },
                                                            as_it_is, EndReason::kPruner}),
                             ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "Of" +
                                  std::to_string(std::get<1>(info.param));
                         });

// Otherwise the studies above would show little.
TEST(JobSequence, TheStudiesOfEveryOrderHaveJobsOfEachKind) {
  const auto orders_of = [](RungPruner::Next pruner, JobSequence::CancelQuery is_cancelled) {
    SearchSettings settings = settings_of(6, 2);
    settings.pruner = std::make_shared<RungPruner>(std::move(pruner));
    return AllOrders(settings, std::move(is_cancelled));
  };
  EXPECT_TRUE(orders_of(resume_early, nullptr).kinds().count(StudyJob::Kind::kResume));
  const AllOrders copies = orders_of(copy_best, nullptr);
  EXPECT_TRUE(copies.kinds().count(StudyJob::Kind::kPrune));
  EXPECT_TRUE(std::any_of(copies.trials().begin(), copies.trials().end(),
                          [](const Trial& trial) { return trial.copied_from.has_value(); }));

  const AllOrders cancelled =
      orders_of(resume_early, [](std::int64_t trial, std::int64_t) { return trial == 0; });

  EXPECT_EQ(cancelled.studies().size(), 1U);
  EXPECT_TRUE(cancelled.kinds().count(StudyJob::Kind::kCancel));
  EXPECT_EQ(cancelled.trials()[0].state, TrialState::kFailed);
}

/// A study with so many jobs at a time, none of which has ended.
JobSequence begun(const SearchSettings& settings) {
  JobSequence sequence(settings, RandomStreams(1), /*maximizes=*/false);
  while (sequence.next())
    continue;
  return sequence;
}

Trial complete(const JobSequence& sequence, std::int64_t trial) {
  const auto index = static_cast<std::size_t>(trial);
  return trained(sequence, {{trial, trial, StudyJob::Kind::kStart}, sequence.trials()[index]});
}

TEST(JobSequence, AJobSeesTheEndsOfThoseAsFarBackAsStudiesAreParallel) {
  const SearchSettings settings = settings_of(5, 2);
  JobSequence sequence = begun(settings);
  ASSERT_EQ(sequence.size(), 2U);

  sequence.end(1, complete(sequence, 1));
  EXPECT_FALSE(sequence.next()) << "job 2 sees the end of job 0";
  EXPECT_EQ(sequence.trials()[1].state, TrialState::kRunning);
  EXPECT_EQ(sequence.newest_trials()[1].state, TrialState::kComplete);

  sequence.end(0, complete(sequence, 0));
  ASSERT_TRUE(sequence.next());
  EXPECT_EQ(sequence.trials()[0].state, TrialState::kComplete);
  EXPECT_EQ(sequence.trials()[1].state, TrialState::kRunning) << "and of no later one";
}

TEST(JobSequence, AnAsynchronousStudySeesEveryEndAtOnce) {
  SearchSettings settings = settings_of(5, 2);
  settings.asynchronous = true;
  JobSequence sequence = begun(settings);
  ASSERT_EQ(sequence.size(), 2U);

  sequence.end(1, complete(sequence, 1));
  EXPECT_EQ(sequence.trials()[1].state, TrialState::kComplete);
  EXPECT_TRUE(sequence.next());
  EXPECT_FALSE(sequence.next()) << "two run";
}

TEST(JobSequence, AnEarlyEndLeavesOutLaterJobs) {
  const SearchSettings settings = settings_of(5, 3);
  JobSequence sequence = begun(settings);
  sequence.end(0, complete(sequence, 0));
  sequence.end(2, complete(sequence, 2));
  EXPECT_EQ(sequence.ended_from(0), 1U);
  EXPECT_EQ(sequence.ended_from(2), 3U);

  sequence.end_after(1);

  EXPECT_TRUE(sequence.is_over());
  EXPECT_FALSE(sequence.next());
  EXPECT_TRUE(sequence.counts(0));
  EXPECT_FALSE(sequence.counts(2));
  EXPECT_EQ(sequence.final_trials().size(), 1U);
}

TEST(JobSequence, AResumedStudyTakesPointsThatItHadAndSuggestsTheOthers) {
  SearchSettings settings = settings_of(4, 1);
  const AllOrders whole(settings);
  std::vector<Point> known;
  for (std::size_t i = 0; i < 2; ++i)
    known.push_back(whole.trials()[i].point);
  settings.tuner = std::make_shared<SensitiveTuner>(3);
  JobSequence sequence(settings, RandomStreams(1), /*maximizes=*/false, known);

  std::int64_t jobs = 0;
  for (; const std::optional<StudyJob> job = sequence.next(); ++jobs)
    sequence.end(jobs, complete(sequence, jobs));

  EXPECT_EQ(jobs, 3);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(sequence.final_trials()[i].point, whole.trials()[i].point) << i;
}

// Otherwise the search would have no result.
TEST(JobSequence, WithoutACompleteTrialThePausedOneThatIsFurthestResumes) {
  SearchSettings settings = settings_of(2, 2);
  settings.pruner = std::make_shared<RungPruner>([](const StudyView& study) {
    return study.may_start ? NextJob() : NextJob{NextJob::Kind::kWait};
  });
  const AllOrders orders(settings);

  EXPECT_EQ(orders.studies().size(), 1U);
  EXPECT_TRUE(orders.kinds().count(StudyJob::Kind::kResume));
  EXPECT_EQ(std::count_if(orders.trials().begin(), orders.trials().end(), is_complete), 1);
}

}  // namespace
}  // namespace treadle::internal
