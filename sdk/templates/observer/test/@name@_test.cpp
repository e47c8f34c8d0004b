#include <treadle/sdk.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include <treadle/testing/training/observer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::RunObserver> make(const std::filesystem::path& path) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::RunObserver>("@name@", {{"path", path.string()}});
}

// What every observer keeps.
INSTANTIATE_TEST_SUITE_P(@Name@, ObserverContract,
                         ::testing::Values(ObserverCase{"Path",
                                                        [](const std::filesystem::path& folder) {
                                                          return make(folder / "epochs.jsonl");
                                                        },
                                                        {"epochs.jsonl"}}),
                         CaseName());

treadle::EpochSummary epoch(std::int64_t number) {
  return {.epoch = number,
          .epochs = 10,
          .train_loss = 0.25,
          .val_loss = 0.5,
          .metrics = {{"rmse", 0.75, treadle::Direction::kLowerIsBetter}}};
}

class @Name@Test : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "epochs.jsonl"; }
  std::string written() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

  ScratchFolder folder_;
};

TEST_F(@Name@Test, AddsALineAfterEachEpoch) {
  const auto observer = make(file());
  observer->run_started("iris", "runs/iris");

  observer->epoch_completed({"fold-1", 0, 2}, epoch(1));
  observer->epoch_completed({"fold-2", 1, 2}, epoch(1));

  EXPECT_EQ(written(),
            R"({"epoch":1,"fit":"fold-1","loss":0.5,"metrics":{"rmse":0.75},"run":"iris"})"
            "\n"
            R"({"epoch":1,"fit":"fold-2","loss":0.5,"metrics":{"rmse":0.75},"run":"iris"})"
            "\n");
}

TEST_F(@Name@Test, TakesTheTrainingLossWhereNothingIsValidated) {
  const auto observer = make(file());
  observer->run_started("iris", "runs/iris");
  treadle::EpochSummary summary = epoch(7);
  summary.val_loss.reset();
  summary.metrics = {{"auc", std::nan("")}};

  observer->epoch_completed({}, summary);

  EXPECT_EQ(written(),
            R"({"epoch":7,"fit":"final","loss":0.25,"metrics":{"auc":null},"run":"iris"})"
            "\n");
}

TEST_F(@Name@Test, GoesOnWhereAnEarlierRunEnded) {
  const auto first = make(file());
  first->run_started("one", "runs/one");
  first->epoch_completed({}, epoch(1));
  const std::string before = written();
  const auto second = make(file());

  second->run_started("two", "runs/two");
  second->epoch_completed({}, epoch(1));

  EXPECT_EQ(written().substr(0, before.size()), before);
  EXPECT_EQ(written().size(), 2 * before.size());
}

}  // namespace
