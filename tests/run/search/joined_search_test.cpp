// A search of several processes: the same study as of one, whatever happens to any of them.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/config.h>
#include <treadle/search/study_storage.h>

#include "joined_searches.h"

namespace treadle::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string& expected_outcome() {
  static const std::string outcome = [] {
    const Runtime runtime = watching_runtime();
    const Workspace alone;
    return outcome_of(
        run_workflow(runtime, runtime.resolve(shared_document()), alone.options()).folder);
  }();
  return outcome;
}

TEST_P(JoinedSearches, AreTheSearchOfOneProcess) {
  write(shared_document());
  AppProcess first(begin(), logged());
  wait_for_study();
  // The first would have ended on a busy machine before the second has begun.
  first.signal(SIGSTOP);
  AppProcess second(join(), logged());
  wait_for_more_trials();
  first.signal(SIGCONT);

  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(second.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected_outcome());
  const std::string shown = read_file(log());
  EXPECT_THAT(shown, HasSubstr("\"study\": \"shared\""));
  EXPECT_THAT(shown, Not(HasSubstr("\"jobs\": 0")));
}

TEST_P(JoinedSearches, LoseNothingWhenAProcessIsKilledOrFrozen) {
  write(shared_document());
  AppProcess first(begin(), logged());
  wait_for_study();
  {
    AppProcess killed(join(), logged());
    wait_up_to(1.6);
    killed.kill_now();
  }
  AppProcess frozen(join(), logged());
  wait_up_to(1.6);
  frozen.signal(SIGSTOP);  // past its lease of two seconds
  wait_up_to(1.6);
  first.kill_now();
  AppProcess again(resumed(), logged());
  std::this_thread::sleep_for(4s);
  frozen.signal(SIGCONT);

  EXPECT_EQ(again.join(), 0) << read_file(log());
  EXPECT_EQ(frozen.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected_outcome());
}

// A machine that cannot see the folder of the run trains a paused trial from its beginning.
TEST_P(JoinedSearches, NeedNoFolderInCommon) {
  write(shared_document());
  AppProcess first(begin(), logged());
  wait_for_study();
  std::ofstream(run() / "study.id") << "another\n";
  AppProcess second(join(), logged());

  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(second.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected_outcome());
}

TEST_P(JoinedSearches, AreRefusedForAnotherSearchOfTheSameName) {
  Json document = shared_document();
  write(document);
  ASSERT_EQ(AppProcess(begin(), logged()).join(), 0) << read_file(log());
  document["search"]["space"]["optimizer.learning_rate"] = {{"log_uniform", {1e-3, 0.5}}};
  write(document);

  EXPECT_NE(AppProcess(begin(), logged()).join(), 0);

  EXPECT_THAT(read_file(log()), HasSubstr("another study called \"shared\""));
}

/// Trials that begin with the checkpoints of others.
Json population() {
  Json document = shared_document();
  document["training"]["epochs"] = 24;
  document["search"]["trials"] = 10;
  document["search"]["space"] = {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1}}}},
                                 {"model.dropout", {{"uniform", {0, 0.5}}}}};
  document["search"]["pruner"] = {{"use", "population_based"}, {"population", 4}, {"interval", 4}};
  return document;
}

TEST_P(JoinedSearches, CopyCheckpointsOfOneAnother) {
  write(population());
  AppProcess first(begin(), logged());
  wait_for_study();
  AppProcess second(join(), logged());
  AppProcess third(join(), logged());

  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(second.join(), 0) << read_file(log());
  EXPECT_EQ(third.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), outcome_alone(population()));
}

TEST_P(JoinedSearches, AreRefusedWhereCheckpointsToCopyCannotBeReached) {
  write(population());
  AppProcess first(begin(), logged());
  wait_for_study();
  std::ofstream(run() / "study.id") << "another\n";

  EXPECT_NE(AppProcess(join(), logged()).join(), 0);

  EXPECT_THAT(read_file(log()),
              HasSubstr("the study shared has trials that begin with the checkpoints of others, as "
                        "\\\"population_based\\\" makes them. They are in " +
                        run().string() + ", which this process cannot reach; join on a machine"));
  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(outcome_of(run()), outcome_alone(population()));
}

#ifdef TREADLE_TEST_WRONG_MACHINE
std::string on_wrong_machine() {
  return "LD_PRELOAD=" + (build_folder() / "tests/run/libtreadle-wrong-machine.so").string();
}
/// The moments of what follows depend on how busy the machine is.
bool is_asked_for() {
  return std::getenv("TREADLE_SEARCH_KILLS") != nullptr;
}
constexpr const char* kNotAskedFor =
    "set TREADLE_SEARCH_KILLS, on a machine that does nothing else";

// Frozen as well: then it is by clocks that others find its lease to have passed.
TEST_P(JoinedSearches, DoNotDependOnWallClocks) {
  if (!is_asked_for())
    GTEST_SKIP() << kNotAskedFor;
  write(shared_document());
  AppProcess first(begin(), logged());
  wait_for_study();
  AppProcess ahead(join(), logged({on_wrong_machine(), "TREADLE_TEST_CLOCK_OFFSET=3600"}));
  AppProcess behind(join(), logged({on_wrong_machine(), "TREADLE_TEST_CLOCK_OFFSET=-3600"}));
  wait_up_to(1.6);
  ahead.signal(SIGSTOP);
  std::this_thread::sleep_for(3s);
  ahead.signal(SIGCONT);

  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(ahead.join(), 0) << read_file(log());
  EXPECT_EQ(behind.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected_outcome());
}

// Of a server's disk the server speaks; see joined_postgresql_test.cpp.
TEST_P(JoinedSearches, GoOnWithoutAProcessWhoseDiskIsFull) {
  if (!fs::path(location_).is_absolute())
    GTEST_SKIP() << GetParam().storage << " writes to no disk of its clients";
  if (!is_asked_for())
    GTEST_SKIP() << kNotAskedFor;
  write(shared_document());
  const std::vector<std::string> on_full_disk{on_wrong_machine(),
                                              "TREADLE_TEST_FULL_DISK=" + location_};
  AppProcess first(begin(), logged(on_full_disk));
  wait_for_study();
  AppProcess second(join(), logged());
  wait_up_to(1.6);
  std::ofstream(location_ + ".full") << "";

  EXPECT_NE(first.join(), 0);
  EXPECT_THAT(read_file(log()), HasSubstr(location_));
  EXPECT_EQ(AppProcess(resumed(), logged()).join(), 0) << read_file(log());
  EXPECT_EQ(second.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected_outcome());
}
#endif

INSTANTIATE_TEST_SUITE_P(
    OfOneMachine, JoinedSearches,
    ::testing::Values(
        MeetingPlace{"sqlite", [](const fs::path& folder) { return folder / "study"; }},
        MeetingPlace{"journal", [](const fs::path& folder) { return folder / "study"; }}),
    name_of_place);

/// A process that was frozen past its lease, whose job another one has taken and does not do.
class LateResults : public SearchesAt {
 protected:
  /// Trials that take seconds, long enough for the process to lose the job.
  static Json document() {
    Json document = shared_document();
    document["data"]["rows"] = 100000;
    document["training"]["epochs"] = 1;
    document["search"] = {{"trials", 2},
                          {"parallel", 1},
                          {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1}}}}}}};
    return document;
  }

  /// For a time in which the process can end the job.
  bool take_first_job() const {
    const Runtime runtime = watching_runtime();
    const auto storage = runtime.registry().make<StudyStorage>(
        GetParam().storage, Config(Json{{"location", location_}}));
    for (int i = 0; i < 200; ++i) {
      if (storage->claim("shared", 0, "one that dies", 4))
        return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }

  void expect_they_count(const Json& document) {
    write(document);
    AppProcess process(begin(), logged());
    wait_for_study();
    process.signal(SIGSTOP);
    std::future<bool> taken = std::async(std::launch::async, [this] { return take_first_job(); });
    // It may have been frozen while it had the lock of the database.
    for (int i = 0; i < 5 && taken.wait_for(2 * kLease) != std::future_status::ready; ++i) {
      process.signal(SIGCONT);
      std::this_thread::sleep_for(20ms);
      process.signal(SIGSTOP);
    }
    process.signal(SIGCONT);
    ASSERT_TRUE(taken.get()) << "the trial is too short to be interrupted";

    EXPECT_EQ(process.join(), 0) << read_file(log());

    EXPECT_EQ(outcome_of(run()), outcome_alone(document));
  }
};

TEST_P(LateResults, OfTrialsThatAreCompleteCount) {
  expect_they_count(document());
}

// Also where the job then comes back: the trial is evaluated after the same epoch.
TEST_P(LateResults, OfTrialsThatPauseCount) {
  Json paused = document();
  paused["training"]["epochs"] = 3;
  paused["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}, {"min_resource", 1}};
  expect_they_count(paused);
}

TEST_P(LateResults, OfFoldsThatPauseCount) {
  Json paused = document();
  paused["training"]["epochs"] = 3;
  paused["validation"] = {{"use", "k_fold"}, {"folds", 2}};
  paused["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}, {"min_resource", 1}};
  paused["resources"]["workers"] = 2;
  expect_they_count(paused);
}

INSTANTIATE_TEST_SUITE_P(OfOneMachine, LateResults,
                         ::testing::Values(MeetingPlace{
                             "sqlite", [](const fs::path& folder) { return folder / "study"; }}),
                         name_of_place);

}  // namespace
}  // namespace treadle::testing
