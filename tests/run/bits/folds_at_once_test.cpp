// Folds run beside each other as far as there is memory for them, and end in the same bits.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workspace.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Workspace;

/// How many trainings had begun and not ended, at most, and what was noted.
class Watcher final : public RunObserver {
 public:
  int most_at_once() const { return most_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void do_fit_started(const FitId&) override { most_ = std::max(most_, ++running_); }
  void do_fit_completed(const FitId&, const FitSummary&) override { --running_; }
  void do_noted(const std::string& text) override {
    if (text.find("trainings at once") != std::string::npos)
      notes_.push_back(text);
  }

  int running_ = 0;
  int most_ = 0;
  std::vector<std::string> notes_;
};

/// Two folds' trainings take longer than any thread needs to wake up.
nlohmann::json folds() {
  nlohmann::json document = testing::moons(2);
  document["training"]["epochs"] = 60;
  document["training"].erase("early_stopping");
  return document;
}

struct Seen {
  int most_at_once;
  std::vector<std::string> notes;
  std::string history;
};

Seen run_with(std::function<std::optional<std::int64_t>()> available_memory) {
  const Runtime runtime;
  const Workspace workspace;
  Watcher watcher;
  RunOptions options = workspace.options();
  options.observers = {&watcher};
  options.available_memory = std::move(available_memory);
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(folds()), options);
  return {watcher.most_at_once(), watcher.notes(), testing::history_of(outcome.folder)};
}

TEST(FoldsAtOnce, AreAsManyAsThereAreWorkersWhereThereIsMemory) {
  const Seen seen = run_with(nullptr);

  EXPECT_EQ(seen.most_at_once, 2);
  EXPECT_THAT(seen.notes, IsEmpty());
}

// Less than nothing: what a training takes may have been free before.
constexpr std::int64_t kFull = -(std::int64_t{1} << 40);

TEST(FoldsAtOnce, AreOneWhereThereIsMemoryForNoOther) {
  const Seen seen = run_with([] { return kFull; });

  EXPECT_EQ(seen.most_at_once, 1);
  ASSERT_EQ(seen.notes.size(), 1U);
  EXPECT_THAT(seen.notes[0],
              HasSubstr("fewer trainings at once than there are workers: one more needs about "));
}

TEST(FoldsAtOnce, EndInTheSameBitsWhateverRanBeside) {
  const Seen beside = run_with(nullptr);
  const Seen alone = run_with([] { return kFull; });

  EXPECT_EQ(alone.history, beside.history);
}

}  // namespace
}  // namespace treadle
