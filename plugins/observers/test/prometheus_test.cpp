#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/training/observer_contract.h>

namespace treadle::testing {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<RunObserver> observer(const fs::path& path) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<RunObserver>("prometheus", {{"path", path.string()}});
}

INSTANTIATE_TEST_SUITE_P(Observers, ObserverContract,
                         ::testing::Values(ObserverCase{
                             "Prometheus",
                             [](const fs::path& folder) { return observer(folder / "run.prom"); },
                             {"run.prom"}}),
                         CaseName());

class PrometheusTest : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "run.prom"; }

  std::string written() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

  static EpochSummary epoch(std::int64_t number) {
    return {.epoch = number,
            .epochs = 60,
            .step = number * 8,
            .learning_rate = 0.001,
            .train_loss = 0.25,
            .val_loss = 0.5,
            .metrics = {{"accuracy", 0.875, Direction::kHigherIsBetter}},
            .best = true,
            .seconds = 1.5};
  }

  ScratchFolder folder_;
};

TEST_F(PrometheusTest, WritesTheNewestEpochOfEachTraining) {
  const auto prometheus = observer(file());
  prometheus->run_started("iris", "runs/iris");

  prometheus->epoch_completed({"fold-2", 1, 2}, epoch(1));
  prometheus->epoch_completed({"fold-1", 0, 2}, epoch(1));
  prometheus->epoch_completed({"fold-1", 0, 2}, epoch(2));
  FitSummary done;
  done.best_epoch = 1;
  prometheus->fit_completed({"fold-1", 0, 2}, done);

  EXPECT_EQ(written(),
            R"(# HELP treadle_epoch Epochs trained.
# TYPE treadle_epoch gauge
treadle_epoch{run="iris",fit="fold-1"} 2
treadle_epoch{run="iris",fit="fold-2"} 1
# HELP treadle_epochs_planned Epochs planned; early stopping may end sooner.
# TYPE treadle_epochs_planned gauge
treadle_epochs_planned{run="iris",fit="fold-1"} 60
treadle_epochs_planned{run="iris",fit="fold-2"} 60
# HELP treadle_step Optimizer steps done.
# TYPE treadle_step gauge
treadle_step{run="iris",fit="fold-1"} 16
treadle_step{run="iris",fit="fold-2"} 8
# HELP treadle_learning_rate Learning rate of the last step.
# TYPE treadle_learning_rate gauge
treadle_learning_rate{run="iris",fit="fold-1"} 0.001
treadle_learning_rate{run="iris",fit="fold-2"} 0.001
# HELP treadle_train_loss Mean training loss of the last epoch.
# TYPE treadle_train_loss gauge
treadle_train_loss{run="iris",fit="fold-1"} 0.25
treadle_train_loss{run="iris",fit="fold-2"} 0.25
# HELP treadle_val_loss Validation loss after the last epoch.
# TYPE treadle_val_loss gauge
treadle_val_loss{run="iris",fit="fold-1"} 0.5
treadle_val_loss{run="iris",fit="fold-2"} 0.5
# HELP treadle_epoch_seconds Wall time of the last epoch in seconds.
# TYPE treadle_epoch_seconds gauge
treadle_epoch_seconds{run="iris",fit="fold-1"} 1.5
treadle_epoch_seconds{run="iris",fit="fold-2"} 1.5
# HELP treadle_metric Validation metrics after the last epoch.
# TYPE treadle_metric gauge
treadle_metric{run="iris",fit="fold-1",metric="accuracy"} 0.875
treadle_metric{run="iris",fit="fold-2",metric="accuracy"} 0.875
# HELP treadle_best_epoch The best epoch so far.
# TYPE treadle_best_epoch gauge
treadle_best_epoch{run="iris",fit="fold-1"} 1
treadle_best_epoch{run="iris",fit="fold-2"} 1
# HELP treadle_completed Whether the training has ended: 1 or 0.
# TYPE treadle_completed gauge
treadle_completed{run="iris",fit="fold-1"} 1
treadle_completed{run="iris",fit="fold-2"} 0
)");
}

TEST_F(PrometheusTest, LeavesOutWhatIsNotThere) {
  const auto prometheus = observer(file());
  prometheus->run_started("iris", "runs/iris");
  EpochSummary summary = epoch(1);
  summary.val_loss.reset();
  summary.metrics.clear();
  summary.best = false;

  prometheus->epoch_completed({}, summary);

  EXPECT_EQ(written().find("treadle_val_loss"), std::string::npos);
  EXPECT_EQ(written().find("treadle_metric"), std::string::npos);
  EXPECT_EQ(written().find("treadle_best_epoch"), std::string::npos);
  EXPECT_NE(written().find("treadle_epoch{run=\"iris\",fit=\"final\"} 1\n"), std::string::npos);
}

TEST_F(PrometheusTest, EscapesLabels) {
  const auto prometheus = observer(file());
  prometheus->run_started("a \"b\" \\ c\nd", "runs/a");
  EpochSummary summary = epoch(1);
  summary.metrics = {{"recall.\"x\"", 1}};

  summary.logged = {{"encoded", 2.5}};
  prometheus->epoch_completed({}, summary);

  EXPECT_NE(written().find(",fit=\"final\",tag=\"encoded\"} 2.5\n"), std::string::npos);
  EXPECT_NE(written().find("treadle_epoch{run=\"a \\\"b\\\" \\\\ c\\nd\",fit=\"final\"} 1\n"),
            std::string::npos)
      << written();
  EXPECT_NE(written().find("metric=\"recall.\\\"x\\\"\"} 1\n"), std::string::npos);
}

TEST_F(PrometheusTest, HasTheFormatsWordsForWhatIsNotFinite) {
  const auto prometheus = observer(file());
  EpochSummary summary = epoch(1);
  summary.metrics = {{"a", std::nan("")}, {"b", HUGE_VAL}, {"c", -HUGE_VAL}};

  prometheus->epoch_completed({}, summary);

  EXPECT_NE(written().find("metric=\"a\"} NaN\n"), std::string::npos);
  EXPECT_NE(written().find("metric=\"b\"} +Inf\n"), std::string::npos);
  EXPECT_NE(written().find("metric=\"c\"} -Inf\n"), std::string::npos);
}

TEST_F(PrometheusTest, LeavesNoTemporaryFiles) {
  const auto prometheus = observer(file());
  for (std::int64_t i = 1; i <= 3; ++i)
    prometheus->epoch_completed({}, epoch(i));

  EXPECT_EQ(folder_.files(), std::vector<std::string>{"run.prom"});
}

TEST_F(PrometheusTest, SaysWhenItCannotWrite) {
  const auto prometheus = observer(folder_.path() / "absent" / "run.prom");

  try {
    prometheus->epoch_completed({}, epoch(1));
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_NE(std::string(error.what()).find("absent/run.prom"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos)
        << error.what();
  }
}

TEST_F(PrometheusTest, WantsTheCollectorsSuffix) {
  try {
    observer(folder_.path() / "run.txt");
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_EQ(error.what(), "/path: must end in .prom, or the collector ignores the file; got \"" +
                                (folder_.path() / "run.txt").string() + "\"");
  }
}

}  // namespace
}  // namespace treadle::testing
