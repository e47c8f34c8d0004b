#include "search/journal/study_history.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "search/study/study_end.h"

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// A storage whose leases pass when a test wants them to.
class MemoryStorage final : public StudyStorage {
 public:
  void let_leases_pass() { owners_.clear(); }
  const std::vector<StoredResult>& stored() const { return stored_; }

 private:
  std::vector<std::string> do_studies() override { return {"study"}; }
  nlohmann::json do_create(const std::string&, const nlohmann::json& given) override {
    return given;
  }
  std::optional<nlohmann::json> do_description(const std::string&) override { return {}; }
  bool do_claim(const std::string&, std::int64_t job, const std::string& worker, double) override {
    return owners_.emplace(job, worker).first->second == worker;
  }
  bool do_renew(const std::string&, std::int64_t job, const std::string& worker, double) override {
    return owners_[job] == worker;
  }
  void do_release(const std::string&, std::int64_t job, const std::string& worker) override {
    if (owners_[job] == worker)
      owners_.erase(job);
  }
  bool do_finish(const std::string&, std::int64_t job, const std::string& worker,
                 const nlohmann::json& result) override {
    if (owners_[job] != worker)
      return false;
    stored_.push_back({static_cast<std::int64_t>(stored_.size()) + 1, job, worker, result});
    return true;
  }
  std::vector<StoredResult> do_results(const std::string&, std::int64_t after) override {
    return {stored_.begin() + static_cast<std::ptrdiff_t>(after), stored_.end()};
  }
  nlohmann::json do_end(const std::string&, const nlohmann::json& how) override {
    return ended_ = ended_.is_null() ? how : ended_;
  }
  nlohmann::json do_ended(const std::string&) override { return ended_; }

  std::map<std::int64_t, std::string> owners_;
  std::vector<StoredResult> stored_;
  nlohmann::json ended_;
};

/// A process that searches: its journal is in a file of its own, and is continued by the next
/// process of the same file.
class Process {
 public:
  Process(const fs::path& journal, const std::shared_ptr<StudyStorage>& storage)
      : journal_(journal, "study", space(), {/*maximizes=*/true}, {{"seed", 1}}),
        time_(journal_, std::nullopt) {
    if (storage)
      shared_.emplace(storage, "study", /*lease=*/60);
    history_.emplace(journal_, shared_ ? &*shared_ : nullptr, time_, ExpectedResult{});
    journal_.started(0, space().from_unit(std::vector<double>{0.5}));
  }

  static const SearchSpace& space() {
    static const SearchSpace space({uniform("x", 0, 1)});
    return space;
  }
  StudyHistory& history() { return *history_; }
  SharedStudy& shared() { return *shared_; }

 private:
  StudyJournal journal_;
  SearchTime time_;
  std::optional<SharedStudy> shared_;
  std::optional<StudyHistory> history_;
};

class StudyHistoryTest : public ::testing::Test {
 protected:
  StudyHistoryTest() {
    std::string pattern = (fs::temp_directory_path() / "treadle-history-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~StudyHistoryTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Process process(const std::string& journal) const { return {folder_ / journal, storage_}; }

  /// Trial 0, `jobs` of whose jobs have ended; the next one is number `job`.
  static StudyTrial trial(std::size_t jobs, std::int64_t job) {
    StudyTrial trial;
    trial.now.number = 0;
    trial.jobs = jobs;
    trial.job = job;
    return trial;
  }
  static JobResult paused() {
    return {.trial = 0,
            .state = TrialState::kPaused,
            .epoch = 2,
            .intermediate = {{1, -0.5}, {2, -0.75}},
            .seconds = 3};
  }
  static JobResult complete() {
    return {.trial = 0,
            .state = TrialState::kComplete,
            .epoch = 2,
            .values = {-0.875},
            .constraints = {},
            .intermediate = {{1, -0.5}, {2, -0.75}, {3, -0.875}},
            .seconds = 1};
  }
  static void expect_equal(const JobResult& found, const JobResult& expected) {
    EXPECT_EQ(to_json(found), to_json(expected));
  }

  fs::path folder_;
  std::shared_ptr<MemoryStorage> storage_;  // null: one process searches
};

TEST_F(StudyHistoryTest, AResumedRunKnowsTheEndsOfItsJournal) {
  {
    Process first = process("journal");
    EXPECT_FALSE(first.history().find_end(trial(0, 0)));
    EXPECT_TRUE(first.history().end(0, paused()));
    EXPECT_TRUE(first.history().end(4, complete()));
    EXPECT_FALSE(first.history().find_end(trial(1, 4))) << "a job that ended here is over";
  }
  Process resumed = process("journal");

  const auto end_of_first = resumed.history().find_end(trial(0, 0));
  const auto end_of_second = resumed.history().find_end(trial(1, 4));

  ASSERT_TRUE(end_of_first && end_of_second);
  EXPECT_FALSE(end_of_first->is_new);
  expect_equal(end_of_first->result, paused());
  expect_equal(end_of_second->result, complete());
  EXPECT_FALSE(resumed.history().find_end(trial(2, 5)));
}

TEST_F(StudyHistoryTest, ATrialThatIsACopyHasTheValuesOfTheOtherFirst) {
  StudyTrial copy = trial(0, 0);
  copy.inherited = {{1, -0.25}};
  Process(process("journal")).history().end(0, paused());
  const auto end = process("journal").history().find_end(copy);

  ASSERT_TRUE(end);
  ASSERT_EQ(end->result.intermediate.size(), 2U);
  EXPECT_EQ(end->result.intermediate[0].value, -0.25);
  EXPECT_EQ(end->result.intermediate[1].value, -0.75);
}

TEST_F(StudyHistoryTest, AnEndOfAnotherProcessIsNewAndGoesIntoTheJournal) {
  storage_ = std::make_shared<MemoryStorage>();
  Process other = process("other");
  ASSERT_TRUE(other.history().end(0, paused()));
  {
    Process first = process("journal");
    EXPECT_FALSE(first.history().find_end(trial(0, 0))) << "it was not fetched";
    first.shared().fetch();

    const auto end = first.history().find_end(trial(0, 0));

    ASSERT_TRUE(end);
    EXPECT_TRUE(end->is_new);
    expect_equal(end->result, paused());
  }
  storage_.reset();
  const auto end = process("journal").history().find_end(trial(0, 0));
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->is_new);
  expect_equal(end->result, paused());
}

TEST_F(StudyHistoryTest, AResultThatComesTooLateDoesNotCount) {
  storage_ = std::make_shared<MemoryStorage>();
  Process slow = process("slow");
  Process other = process("other");
  ASSERT_TRUE(slow.shared().claim(0));
  storage_->let_leases_pass();
  ASSERT_TRUE(other.shared().claim(0));

  EXPECT_FALSE(slow.history().end(0, complete()));
  EXPECT_TRUE(slow.shared().is_lost(0));
  EXPECT_TRUE(other.history().end(0, paused()));
  slow.shared().fetch();

  const auto end = slow.history().find_end(trial(0, 0));
  ASSERT_TRUE(end);
  expect_equal(end->result, paused());
  EXPECT_EQ(storage_->stored().size(), 1U);
  EXPECT_EQ(slow.shared().finished(), 0);
}

TEST_F(StudyHistoryTest, AResultCountsAfterAllIfTheOtherProcessDies) {
  storage_ = std::make_shared<MemoryStorage>();
  Process slow = process("slow");
  Process other = process("other");
  ASSERT_TRUE(other.shared().claim(0));
  EXPECT_FALSE(slow.history().end(0, complete()));
  storage_->let_leases_pass();

  EXPECT_TRUE(slow.history().end(0, complete()));
  EXPECT_FALSE(slow.shared().is_lost(0));
  EXPECT_EQ(slow.shared().finished(), 1);
}

TEST_F(StudyHistoryTest, TheFirstEarlyEndStands) {
  storage_ = std::make_shared<MemoryStorage>();
  Process first = process("first");
  Process second = process("second");
  EXPECT_TRUE(second.history().find_early_end().is_null());
  first.history().end_early(ended_by_time(3, 0, 1));

  second.history().end_early(ended_by_time(4, 0, 2));

  EXPECT_EQ(second.history().find_early_end().at("jobs"), 3);
  EXPECT_EQ(process("third").history().find_early_end().at("jobs"), 3);
  storage_.reset();
  EXPECT_EQ(process("third").history().find_early_end().at("jobs"), 3) << "its journal has it";
}

}  // namespace
}  // namespace treadle::internal
