#include <treadle/host/compare/method_comparison.h>

#include <algorithm>

#include <gmock/gmock.h>

#include <treadle/host/compare/comparability.h>

// Expected values: SciPy 1.10.1, by the command above each test.
namespace treadle::compare {
namespace {

using Json = nlohmann::json;
using Design = PairComparison::Design;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kRoundingOfMethods = 1e-9;

/// Runs as their folders would show them; nothing is on the disk.
class Methods : public testing::Test {
 protected:
  struct Fold {
    double accuracy;
    std::string rows;
  };

  /// A run of the method with so many units.
  void given_run(int units, int seed, const std::vector<Fold>& folds,
                 const std::string& data = "data") {
    RunRecord run;
    run.folder = "runs/" + std::to_string(runs_.size());
    run.state = RunState::kFinished;
    run.seconds = 1;
    run.document = {{"name", "any"}, {"seed", seed}, {"model", {{"hidden", units}}}};
    Json results = Json::array();
    double sum = 0;
    for (std::size_t i = 0; i < folds.size(); ++i) {
      sum += folds[i].accuracy;
      results.push_back({{"name", "fold-" + std::to_string(i + 1)},
                         {"training_time_seconds", 1.0},
                         {"rows", {{"training", 80}, {"validation_hash", folds[i].rows}}},
                         {"validation",
                          {{"loss", 0.5},
                           {"sample_count", 20},
                           {"metric_list", {{{"name", "accuracy"}, {"better", "higher"}}}},
                           {"metrics", {{"accuracy", folds[i].accuracy}}}}}});
    }
    Json result{{"model_path", "model.safetensors"},
                {"environment", {{"data_hash", data}, {"data_rows", 100}}}};
    if (folds.size() > 1) {
      result["mean_loss"] = 0.5;
      result["mean_metrics"] = {{"accuracy", sum / static_cast<double>(folds.size())}};
      result["fold_results"] = results;
    } else {
      result.update(results.front());
    }
    run.result = run_result_from(result, "result.json");
    runs_.push_back(run);
  }

  MethodComparison compare(bool losses_are_comparable = true) {
    measured_.clear();
    for (const RunRecord& run : runs_)
      measured_.push_back(measure_run(run));
    return compare_methods(runs_, measured_, losses_are_comparable);
  }

  /// The verdict on the accuracy.
  NumberVerdict verdict() {
    const MethodComparison comparison = compare();
    for (const NumberVerdict& one : comparison.verdicts) {
      if (comparison.numbers[one.number].name == "accuracy")
        return one;
    }
    ADD_FAILURE() << "no verdict on the accuracy";
    return {};
  }

  std::vector<std::string> checks() {
    const MethodComparison comparison = compare();
    std::vector<std::string> texts;
    for (const Check& check : check_comparability(runs_, measured_, comparison))
      texts.push_back(check.about + (check.sameness == Sameness::kSame ? " same: " : ": ") +
                      check.text);
    return texts;
  }

  std::vector<RunRecord> runs_;
  std::vector<MeasuredRun> measured_;
};

// scipy.stats.ttest_rel([0.90, 0.93, 0.91, 0.95, 0.92], [0.88, 0.90, 0.91, 0.90, 0.91]);
// scipy.stats.wilcoxon([0.02, 0.03, 0.05, 0.01], mode="exact"), the difference of 0 left out
TEST_F(Methods, WithTheSameSeedsOnOneSplitArePairs) {
  const double wide[]{0.90, 0.93, 0.91, 0.95, 0.92};
  const double narrow[]{0.88, 0.90, 0.91, 0.90, 0.91};
  for (int seed = 0; seed < 5; ++seed) {
    given_run(32, seed, {{wide[seed], "split"}});
    given_run(8, seed, {{narrow[seed], "split"}});
  }

  const NumberVerdict verdict = this->verdict();

  ASSERT_EQ(verdict.pairs.size(), 1U);
  const PairComparison& pair = verdict.pairs.front();
  EXPECT_EQ(pair.design, Design::kSeeds);
  EXPECT_EQ(pair.pairs, 5);
  EXPECT_NEAR(pair.test->difference, 0.022, kRoundingOfMethods);
  EXPECT_NEAR(pair.test->t, 2.5574480523640273, kRoundingOfMethods);
  EXPECT_NEAR(pair.test->p, 0.06280761100070095, kRoundingOfMethods);
  EXPECT_NEAR(pair.ranks->p, 0.125, kRoundingOfMethods);
  EXPECT_EQ(verdict.best, 0U);
  EXPECT_THAT(verdict.not_distinguishable, ElementsAre(0, 1)) << "the interval contains 0";
  EXPECT_FALSE(verdict.has_winner());
}

// d = numpy.array([0.02, 0.03, 0.01, 0.04, 0.03]); t = d.mean() / (d.std(ddof=1) *
// numpy.sqrt(1/5 + 20/80)); 2 * scipy.stats.t.sf(t, 4)
TEST_F(Methods, OnTheSameFoldsAreTestedWithTheCorrection) {
  given_run(32, 1, {{0.92, "a"}, {0.93, "b"}, {0.91, "c"}, {0.94, "d"}, {0.93, "e"}});
  given_run(8, 1, {{0.90, "a"}, {0.90, "b"}, {0.90, "c"}, {0.90, "d"}, {0.90, "e"}});

  const NumberVerdict verdict = this->verdict();

  const PairComparison& pair = verdict.pairs.front();
  EXPECT_EQ(pair.design, Design::kSplits);
  EXPECT_EQ(pair.pairs, 5);
  EXPECT_NEAR(pair.test->p, 0.027293757395208038, kRoundingOfMethods);
  EXPECT_FALSE(pair.ranks) << "folds are not independent";
  EXPECT_THAT(verdict.not_distinguishable, ElementsAre(0));
  EXPECT_TRUE(verdict.has_winner());
}

TEST_F(Methods, OfSeveralSeedsOnTheSameFoldsCountEachFoldOnce) {
  for (int seed = 0; seed < 4; ++seed) {
    const double noise = 0.001 * seed;
    given_run(32, seed, {{0.92 + noise, "a"}, {0.95 - noise, "b"}});
    given_run(8, seed, {{0.90, "a"}, {0.90, "b"}});
  }

  EXPECT_EQ(verdict().pairs.front().pairs, 2) << "more seeds are no more rows";
}

TEST_F(Methods, WithASplitForEachSeedAreTestedWithTheCorrection) {
  for (int seed = 0; seed < 3; ++seed) {
    given_run(32, seed, {{0.92 + 0.01 * seed, "split " + std::to_string(seed)}});
    given_run(8, seed, {{0.90, "split " + std::to_string(seed)}});
  }

  const PairComparison pair = verdict().pairs.front();

  EXPECT_EQ(pair.design, Design::kSplits);
  EXPECT_EQ(pair.pairs, 3);
}

/// Data drawn anew for each seed: no training rows are shared.
TEST_F(Methods, WithDataOfTheirOwnForEachSeedArePairs) {
  for (int seed = 0; seed < 3; ++seed) {
    const std::string data = "data " + std::to_string(seed);
    given_run(32, seed, {{0.92 + 0.01 * seed, "split " + std::to_string(seed)}}, data);
    given_run(8, seed, {{0.90, "split " + std::to_string(seed)}}, data);
  }

  EXPECT_EQ(verdict().pairs.front().design, Design::kSeeds);
  EXPECT_THAT(checks(), testing::Contains(AllOf(HasSubstr("data same: "),
                                                HasSubstr("each seed has data of its own"))));
}

// scipy.stats.ttest_ind([0.90, 0.93, 0.91], [0.88, 0.90, 0.91, 0.90], equal_var=False)
TEST_F(Methods, WithOtherSeedsAreTwoSamples) {
  for (const double accuracy : {0.90, 0.93, 0.91})
    given_run(32, static_cast<int>(runs_.size()), {{accuracy, "split"}});
  for (const double accuracy : {0.88, 0.90, 0.91, 0.90})
    given_run(8, static_cast<int>(runs_.size()), {{accuracy, "split"}});

  const PairComparison pair = verdict().pairs.front();

  EXPECT_EQ(pair.design, Design::kUnpaired);
  EXPECT_NEAR(pair.test->p, 0.21973678134831798, kRoundingOfMethods);
}

TEST_F(Methods, OfOneRunEachHaveNoTestAndNoWinner) {
  given_run(32, 1, {{0.99, "split"}});
  given_run(8, 1, {{0.50, "split"}});

  const NumberVerdict verdict = this->verdict();

  EXPECT_EQ(verdict.pairs.front().design, Design::kNone);
  EXPECT_FALSE(verdict.pairs.front().test);
  EXPECT_EQ(verdict.best, 0U);
  EXPECT_FALSE(verdict.has_winner());
}

TEST_F(Methods, OnOtherDataHaveNoTest) {
  for (int seed = 0; seed < 3; ++seed) {
    given_run(32, seed, {{0.90 + 0.01 * seed, "split"}}, "some");
    given_run(8, seed + 3, {{0.50 + 0.01 * seed, "split"}}, "other");
  }

  EXPECT_EQ(verdict().pairs.front().design, Design::kNone);
  EXPECT_THAT(checks(), testing::Contains(AllOf(HasSubstr("data: "), HasSubstr("2 different"))));
}

TEST_F(Methods, AreLeftOutWhereTheyRepeatASeed) {
  given_run(32, 1, {{0.90, "split"}});
  given_run(32, 1, {{0.90, "split"}});
  given_run(32, 2, {{0.94, "split"}});

  const MethodComparison comparison = compare();

  ASSERT_EQ(comparison.methods.size(), 1U);
  EXPECT_THAT(comparison.methods[0].runs, ElementsAre(0, 2));
  EXPECT_THAT(comparison.methods[0].repeats, ElementsAre(1));
  EXPECT_THAT(checks(), testing::Contains(AllOf(HasSubstr("seeds"), HasSubstr("runs/1"))));
}

/// The rule "within a point of each other" would find a winner that depends on the order.
TEST_F(Methods, NearTheBestAreNamedInAnyOrder) {
  const std::vector<std::pair<int, double>> methods{{8, 0.90}, {16, 0.905}, {32, 0.95}};
  for (std::size_t turn = 0; turn < methods.size(); ++turn) {
    runs_.clear();
    for (std::size_t i = 0; i < methods.size(); ++i) {
      const auto [units, accuracy] = methods[(turn + i) % methods.size()];
      const double scatter[]{-0.01, 0.0, 0.01, 0.005, -0.005};
      for (int seed = 0; seed < 5; ++seed)
        given_run(units, seed, {{accuracy + scatter[(seed + units) % 5], "split"}});
    }

    const MethodComparison comparison = compare();

    const auto accuracy = std::find_if(comparison.verdicts.begin(), comparison.verdicts.end(),
                                       [&](const NumberVerdict& one) {
                                         return comparison.numbers[one.number].name == "accuracy";
                                       });
    ASSERT_EQ(accuracy->pairs.size(), 3U);
    EXPECT_EQ(comparison.methods[accuracy->best].settings.front(), 32);
    EXPECT_TRUE(accuracy->has_winner());
    for (const PairComparison& pair : accuracy->pairs)
      EXPECT_GE(*pair.p_holm, pair.test->p);
  }
}

TEST_F(Methods, SayNothingOfLossesThatAreOtherFunctions) {
  for (int seed = 0; seed < 2; ++seed) {
    given_run(32, seed, {{0.90, "split"}});
    given_run(8, seed, {{0.90, "split"}});
    runs_.back().document["loss"] = {{"use", "focal"}};
  }

  EXPECT_EQ(compare(true).verdicts.size(), 2U);
  EXPECT_EQ(compare(false).verdicts.size(), 1U);
  EXPECT_FALSE(have_comparable_losses(runs_));
  EXPECT_THAT(checks(), testing::Contains(AllOf(HasSubstr("loss: "), Not(HasSubstr("same")))));
}

TEST_F(Methods, AreSaidToBeComparableWhereRowsAreTheSame) {
  given_run(32, 1, {{0.90, "split"}});
  given_run(8, 1, {{0.90, "split"}});
  EXPECT_THAT(checks(), testing::IsSupersetOf({"data same: the same, 100 rows",
                                               "rows same: evaluated on the same 20 rows"}));

  given_run(32, 2, {{0.90, "other"}});
  given_run(8, 2, {{0.90, "other"}});
  EXPECT_THAT(checks(), testing::Contains(HasSubstr("each seed has a split of its own")));

  given_run(8, 3, {{0.90, "third"}});
  given_run(32, 3, {{0.90, "fourth"}});
  EXPECT_THAT(checks(), testing::Contains(AllOf(HasSubstr("rows: "), HasSubstr("\"seed\""))));
}

TEST_F(Methods, ThatPredictOtherTargetsAreRefused) {
  given_run(32, 1, {{0.90, "split"}});
  given_run(8, 1, {{0.90, "split"}});
  for (RunRecord& run : runs_) {
    run.result->task = "classification";
    run.result->data["targets"] = {{{"name", "species"}}};
  }
  EXPECT_NO_THROW(expect_same_targets(runs_));

  runs_[1].result->task = "regression";
  runs_[1].result->data["targets"] = {{{"name", "price"}}};

  try {
    expect_same_targets(runs_);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("runs/1: predicts \"price\" (regression)"),
                                    HasSubstr("runs/0 predicts \"species\" (classification)")));
  }
}

}  // namespace
}  // namespace treadle::compare
