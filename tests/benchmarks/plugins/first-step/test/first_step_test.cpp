#include <treadle/sdk.h>

#include <chrono>
#include <fstream>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/training/observer_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::RunObserver> make(const std::filesystem::path& path) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::RunObserver>("first_step", {{"path", path.string()}});
}

INSTANTIATE_TEST_SUITE_P(FirstStep, ObserverContract,
                         ::testing::Values(ObserverCase{"Path",
                                                        [](const std::filesystem::path& folder) {
                                                          return make(folder / "moment");
                                                        },
                                                        {"moment"}}),
                         CaseName());

std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class FirstStepTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "moment"; }
  std::int64_t written() const {
    std::int64_t moment = 0;
    std::ifstream(file()) >> moment;
    return moment;
  }

  ScratchFolder folder_;
};

TEST_F(FirstStepTest, WritesTheMomentOfTheFirstStepAndOfNoOther) {
  const auto observer = make(file());
  observer->run_started("start", "runs/start");
  EXPECT_FALSE(std::filesystem::exists(file()));
  const std::int64_t before = now();

  observer->step_completed({}, {1, 1, 1, 2});
  const std::int64_t after = now();
  const std::int64_t moment = written();
  observer->step_completed({}, {1, 1, 2, 2});

  EXPECT_GE(moment, before);
  EXPECT_LE(moment, after);
  EXPECT_EQ(written(), moment);
}

TEST_F(FirstStepTest, BeginsAnewWithEachRun) {
  const auto observer = make(file());
  observer->run_started("one", "runs/one");
  observer->step_completed({}, {1, 1, 1, 1});
  const std::int64_t first = written();

  observer->run_started("two", "runs/two");
  observer->step_completed({}, {1, 1, 1, 1});

  EXPECT_GT(written(), first);
}

}  // namespace
