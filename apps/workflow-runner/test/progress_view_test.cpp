#include "terminal/progress_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A pipe that stands for the screen.
class Screen {
 public:
  Screen() {
    if (pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) != 0)
      throw std::runtime_error("no pipe");
  }
  ~Screen() {
    close(ends_[0]);
    close(ends_[1]);
  }

  Terminal piped() const { return Terminal(ends_[1], false, false); }
  Terminal terminal() const { return Terminal(ends_[1], true, false); }

  /// Everything written so far.
  const std::string& text() {
    std::array<char, 4096> buffer{};
    for (ssize_t count; (count = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      text_.append(buffer.data(), static_cast<std::size_t>(count));
    return text_;
  }

  bool shows_before_long(const std::string& expected) {
    for (int i = 0; i < 500 && text().find(expected) == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return text_.find(expected) != std::string::npos;
  }

 private:
  std::array<int, 2> ends_{};
  std::string text_;
};

EpochSummary epoch(std::int64_t number, std::int64_t epochs, bool best = false) {
  EpochSummary summary;
  summary.epoch = number;
  summary.epochs = epochs;
  summary.learning_rate = 0.01;
  summary.train_loss = 0.5;
  summary.val_loss = 0.25;
  summary.metrics = {{"accuracy", 0.9, Direction::kHigherIsBetter}};
  summary.best = best;
  summary.seconds = 0.5;
  return summary;
}

std::int64_t lines_of(std::int64_t epochs, std::int64_t trainings) {
  std::int64_t lines = 0;
  for (std::int64_t i = 1; i <= epochs; ++i)
    lines += has_line(i, epochs, trainings) ? 1 : 0;
  return lines;
}

TEST(ProgressText, GivesEveryEpochOfAShortTrainingALine) {
  EXPECT_EQ(lines_of(1, 1), 1);
  EXPECT_EQ(lines_of(50, 1), 50);
}

TEST(ProgressText, GivesALongTrainingAboutTwentyLinesWithTheFirstAndTheLast) {
  for (std::int64_t epochs : {51, 60, 100, 12345}) {
    EXPECT_GE(lines_of(epochs, 1), 20) << epochs;
    EXPECT_LE(lines_of(epochs, 1), 22) << epochs;
    EXPECT_TRUE(has_line(1, epochs, 1));
    EXPECT_TRUE(has_line(epochs, epochs, 1));
  }
}

TEST(ProgressText, SharesTheLinesAmongTrainings) {
  EXPECT_LE(6 * lines_of(60, 6), 30);
  EXPECT_GE(lines_of(60, 6), 2);
}

TEST(ProgressText, GivesATrainingWithoutEndFewerAndFewerLines) {
  std::int64_t lines = 0;
  for (std::int64_t i = 1; i <= 100'000; ++i) {
    lines += has_line(i, std::nullopt, 1) ? 1 : 0;
    if (i == 20) {
      EXPECT_EQ(lines, 20);
    }
  }
  EXPECT_LE(lines, 100);
  EXPECT_TRUE(has_line(100'000, std::nullopt, 1));
}

TEST(ProgressText, AlignsColumns) {
  const FitId fit{"fold-2", 1, 6};
  const EpochTable table(fit, epoch(3, 60));

  EXPECT_EQ(table.head(), "        epoch   training  validation   accuracy       rate       time");
  EXPECT_EQ(table.row(fit, epoch(3, 60)),
            "fold-2   3/60     0.5000      0.2500     0.9000     0.0100     0.50 s");
}

TEST(ProgressText, CountsEpochsAloneWhereTheTrainingHasNoEnd) {
  EpochSummary summary = epoch(12, 0);
  summary.epochs.reset();

  EXPECT_EQ(EpochTable({}, summary).row({}, summary),
            "   12     0.5000      0.2500     0.9000     0.0100     0.50 s");
}

TEST(ProgressText, HasAColumnForWhatTheModelShows) {
  EpochSummary shown = epoch(3, 60);
  shown.logged = {{"encoded", 2.5, Direction::kNone}};
  const EpochTable table({}, shown);

  EXPECT_EQ(table.head(),
            "epoch   training  validation   accuracy    encoded       rate       time");
  EXPECT_EQ(table.row({}, shown),
            " 3/60     0.5000      0.2500     0.9000     2.5000     0.0100     0.50 s");
}

TEST(ProgressText, TheFirstEvaluatedEpochNeedsATableOfItsOwn) {
  EpochSummary not_evaluated = epoch(1, 60);
  not_evaluated.val_loss.reset();
  not_evaluated.metrics.clear();

  EXPECT_TRUE(EpochTable({}, not_evaluated).lacks_columns_of(epoch(2, 60)));
  EXPECT_FALSE(EpochTable({}, not_evaluated).lacks_columns_of(not_evaluated));
  EXPECT_FALSE(EpochTable({}, epoch(2, 60)).lacks_columns_of(not_evaluated));
}

TEST(ProgressText, SaysWhichEpochIsBest) {
  const EpochTable table({}, epoch(3, 60));

  EXPECT_THAT(table.row({}, epoch(3, 60, true)), testing::EndsWith("  best"));
}

TEST(EpochTable, KeepsTimeAndBestInANarrowWindow) {
  EpochSummary summary = epoch(3, 60);
  summary.best = true;
  for (const char* name : {"rmse", "mae", "r2", "max_error"})
    summary.metrics.push_back({name, 0.5, Direction::kNone});
  const std::string wide = EpochTable({"fold-1", 0, 6}, summary).row({"fold-1", 0, 6}, summary);
  ASSERT_GT(columns_of(wide), 100U);
  for (const std::size_t columns : {60U, 80U, 100U}) {
    const EpochTable table({"fold-1", 0, 6}, summary, columns);
    const std::string row = table.row({"fold-1", 0, 6}, summary);
    EXPECT_LE(columns_of(row), columns);
    EXPECT_THAT(table.head(), testing::EndsWith("time"));
    EXPECT_THAT(row, testing::EndsWith("  best"));
  }
  EXPECT_THAT(EpochTable({"fold-1", 0, 6}, summary, 80).head(),
              testing::AllOf(testing::HasSubstr(summary.metrics.front().name),
                             testing::Not(testing::HasSubstr("rate"))));
}

TEST(ProgressText, TellsOneTrainingsProgress) {
  LiveState state;
  state.running = {{"final", {12, 60, 240, 1200}, 0.125, MetricValue{"accuracy", 0.95, {}}}};
  state.steps_per_second = 1240.4;
  state.seconds_left = 12.2;

  EXPECT_EQ(live_line(state, 200),
            "epoch 12/60  20 %  1240 steps/s  loss 0.1250  accuracy 0.9500  0:12 left");
}

TEST(ProgressText, TellsNoShareOfATrainingWithoutEnd) {
  LiveState state;
  state.running = {{"final", {12, {}, 240, {}}, 0.125, {}}};
  state.steps_per_second = 1240.4;

  EXPECT_EQ(live_line(state, 200), "epoch 12  1240 steps/s  loss 0.1250");
}

TEST(ProgressText, TellsSeveralTrainingsProgress) {
  LiveState state;
  state.trainings = 6;
  state.finished = 2;
  state.running = {{"fold-3", {12, 60, 240, 1200}, {}, {}}, {"fold-4", {9, 60, 180, 1200}, {}, {}}};

  EXPECT_EQ(live_line(state, 200), "2 of 6 done  fold-3 12/60  fold-4 9/60");
}

TEST(ProgressText, CutsTheLineToANarrowWindow) {
  LiveState state;
  state.running = {{"final", {12, 60, 240, 1200}, 0.125, {}}};

  EXPECT_EQ(live_line(state, 15), "epoch 12/60  2…");
  EXPECT_EQ(columns_of(live_line(state, 15)), 15U);
}

TEST(ProgressText, WritesTimeLikeAClock) {
  EXPECT_EQ(clock_text(5), "0:05");
  EXPECT_EQ(clock_text(3599.4), "59:59");
  EXPECT_EQ(clock_text(3723), "1:02:03");
}

TEST(ProgressText, SumsUpAFold) {
  FitSummary summary;
  summary.best_epoch = 34;
  summary.epochs = 44;
  summary.final_loss = 0.2;
  summary.best_loss = 0.1432;
  summary.metrics = {{"accuracy", 0.95, {}}, {"recall.a", 1.0, {}}};
  summary.stop_reason = "no improvement for 10 epochs";

  EXPECT_EQ(fit_line({"fold-2", 1, 6}, summary),
            "fold-2: 44 epochs, the best was 34, loss 0.1432, accuracy 0.9500 (no improvement for "
            "10 epochs)");
}

TEST(ProgressView, PrintsPlainLinesIntoAPipe) {
  Screen screen;
  ProgressView view(screen.piped(), false);
  const FitId fit;

  view.run_started("iris", "runs/iris-1");
  view.noted("the task is classification");
  view.fit_started(fit);
  view.step_completed(fit, {1, 2, 5, 10});
  view.epoch_completed(fit, epoch(1, 2, true));
  view.epoch_completed(fit, epoch(2, 2));
  view.fit_completed(fit, {});
  view.finish();

  EXPECT_EQ(screen.text(),
            "iris  runs/iris-1\n"
            "note: the task is classification\n"
            "epoch   training  validation   accuracy       rate       time\n"
            "  1/2     0.5000      0.2500     0.9000     0.0100     0.50 s  best\n"
            "  2/2     0.5000      0.2500     0.9000     0.0100     0.50 s\n");
  EXPECT_EQ(view.folder(), "runs/iris-1");
}

TEST(ProgressView, PrintsALineIntoAPipeWhereALongEpochPrintsNone) {
  Screen screen;
  ProgressView view(screen.piped(), false, std::chrono::milliseconds(20));
  const FitId fit("final", 0, 1);
  view.fit_started(fit);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(screen.text(), "");  // nothing has begun
  view.step_completed(fit, {1, 10, 1, 100});
  EXPECT_TRUE(screen.shows_before_long("epoch 1/10")) << screen.text();
  EXPECT_THAT(screen.text(), Not(HasSubstr("\x1b")));
  view.finish();
}

TEST(ProgressView, PaintsALineThatMovesOnATerminal) {
  Screen screen;
  ProgressView view(screen.terminal(), false);
  const FitId fit;

  view.run_started("iris", "runs/iris-1");
  view.fit_started(fit);
  view.step_completed(fit, {1, 60, 6, 600});

  EXPECT_TRUE(screen.shows_before_long("\repoch 1/60  1 %"));
}

TEST(ProgressView, PromisesNoEndToATrainingOfUnknownLength) {
  for (const bool has_end : {true, false}) {
    Screen screen;
    ProgressView view(screen.terminal(), false);
    const FitId fit;
    const auto shows = [&](const char* text) {
      return screen.text().find(text) != std::string::npos;
    };
    StepProgress progress;
    progress.epoch = 1;
    if (has_end) {
      progress.epochs = 2;
      progress.total_steps = 1'000'000;
    }
    view.fit_started(fit);
    for (int i = 0; i < 500 && !shows(has_end ? " left" : " steps/s"); ++i) {
      ++progress.step;
      view.step_completed(fit, progress);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    view.finish();

    EXPECT_TRUE(shows(has_end ? "\repoch 1/2  0 %" : "\repoch 1  ")) << screen.text();
    EXPECT_TRUE(shows(" steps/s"));
    EXPECT_EQ(shows("%"), has_end);
    EXPECT_EQ(shows(" left"), has_end);
  }
}

TEST(ProgressView, TakesTheMovingLineAwayBeforeALine) {
  Screen screen;
  ProgressView view(screen.terminal(), false);
  const FitId fit;
  view.run_started("iris", "runs/iris-1");
  view.fit_started(fit);
  view.step_completed(fit, {1, 60, 6, 600});
  ASSERT_TRUE(screen.shows_before_long("1/60"));

  view.announce("stopping");
  view.finish();

  EXPECT_THAT(screen.text(), HasSubstr("\r\x1b[Kstopping\n"));
}

TEST(ProgressView, SaysNothingWhenSilent) {
  Screen screen;
  ProgressView view(screen.terminal(), true);

  view.run_started("iris", "runs/iris-1");
  view.fit_started({});
  view.epoch_completed({}, epoch(1, 2));
  view.noted("a choice");
  view.finish();

  EXPECT_EQ(screen.text(), "");
  EXPECT_EQ(view.folder(), "runs/iris-1");
}

TEST(ProgressView, ShowsTheEpochAtWhichATrainingStoppedEarly) {
  Screen screen;
  ProgressView view(screen.piped(), false);
  const FitId fit;
  view.fit_started(fit);
  for (std::int64_t i = 1; i <= 44; ++i)
    view.epoch_completed(fit, epoch(i, 1000));
  ASSERT_THAT(screen.text(), Not(HasSubstr("44/1000")));

  FitSummary summary;
  summary.epochs = 44;
  summary.stop_reason = "no improvement for 10 epochs";
  view.fit_completed(fit, summary);

  EXPECT_THAT(screen.text(), HasSubstr("  44/1000 "));
  EXPECT_THAT(screen.text(), HasSubstr("\nstopped after epoch 44: no improvement for 10 epochs\n"));
}

TEST(ProgressView, WatchesTrainingsThatRunAtOnce) {
  Screen screen;
  ProgressView view(screen.terminal(), false);
  std::vector<std::thread> folds;
  for (std::int64_t i = 0; i < 2; ++i)
    view.fit_started({"fold-" + std::to_string(i + 1), i, 3});
  for (std::int64_t i = 0; i < 2; ++i) {
    folds.emplace_back([&view, i] {
      const FitId fit{"fold-" + std::to_string(i + 1), i, 3};
      for (std::int64_t step = 1; step <= 5000; ++step)
        view.step_completed(fit, {step / 100 + 1, 60, step, 6000});
      view.epoch_completed(fit, epoch(51, 60));
    });
  }
  for (std::thread& fold : folds)
    fold.join();

  EXPECT_TRUE(screen.shows_before_long("0 of 3 done  fold-1 51/60  fold-2 51/60"));
}

TEST(ProgressView, IgnoresATrainingItWasNotToldOf) {
  Screen screen;
  ProgressView view(screen.piped(), false);

  view.step_completed({"fold-9", 8, 3}, {1, 2, 3, 4});
  view.fit_started({"fold-1", 0, 3});
  view.step_completed({"fold-9", 8, 3}, {1, 2, 3, 4});
  view.epoch_completed({"fold-9", 8, 3}, epoch(1, 2));

  EXPECT_EQ(screen.text(), "");
}

}  // namespace
}  // namespace treadle::cli
