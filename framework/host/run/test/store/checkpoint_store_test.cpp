// Checkpoints: the latest good one is found, and each that is damaged is reported.
#include <treadle/host/run/checkpoint_store.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/state_folder.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

StateDict state_after(int step) {
  StateDict model;
  model.put("layer.weight", at::full({2}, 0.5 * step));
  StateDict state(4);
  state.put("model", std::move(model));
  state.put("step", nlohmann::json(step));
  state.put("moment", at::full({3}, step));
  StateDict part;
  part.put("rate", nlohmann::json(0.1 * step));
  state.put("schedule", std::move(part));
  return state;
}

engine::TrainingPosition position_after(int step) {
  return {.epochs_done = 1, .steps_done = step, .at_epoch_end = true, .finished = false};
}

class CheckpointStoreTest : public ::testing::Test {
 protected:
  CheckpointStoreTest() {
    std::string pattern = (fs::temp_directory_path() / "treadle-checkpoints-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
  }
  ~CheckpointStoreTest() override {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

  CheckpointStore store() const { return CheckpointStore(scratch_ / "final"); }
  std::optional<CheckpointStore::Loaded> load_latest() {
    return store().load_latest([this](const std::string& text) { warnings_.push_back(text); });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(scratch_ / "final"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path scratch_;
  std::vector<std::string> warnings_;
};

TEST_F(CheckpointStoreTest, LoadsWhatWasSavedLast) {
  store().save(state_after(4), position_after(4), 2);
  const fs::path newest = store().save(state_after(8), position_after(8), 2);

  const auto loaded = load_latest();

  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->folder, newest);
  EXPECT_EQ(loaded->position.steps_done, 8);
  EXPECT_TRUE(loaded->position.at_epoch_end);
  EXPECT_EQ(loaded->state.version(), 4);
  EXPECT_EQ(loaded->state.value("step"), 8);
  EXPECT_TRUE(loaded->state.tensor("moment").equal(at::full({3}, 8)));
  EXPECT_TRUE(loaded->state.part("model").tensor("layer.weight").equal(at::full({2}, 4.0)));
  EXPECT_EQ(loaded->state.part("schedule").value("rate"), 0.8);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndNothingElse) {
  StateDict state = state_after(4);
  state.put("kept_model", StateDict(state.part("model")));
  for (const int step : {4, 8, 12})
    store().save(state, position_after(step), 2);

  EXPECT_THAT(names(), ElementsAre("step-000000000008", "step-000000000012"));
}

TEST_F(CheckpointStoreTest, ReportsEachDamagedCheckpointThatItSkips) {
  store().save(state_after(4), position_after(4), 3);
  const fs::path of_another = store().save(state_after(8), position_after(8), 3);
  const fs::path torn = store().save(state_after(12), position_after(12), 3);
  StateDict complete = read_state_folder(of_another);
  complete.put("position", nlohmann::json({{"epochs_done", "one"}}));
  write_state_folder(of_another, complete);
  fs::remove(torn / "state.json");

  const auto loaded = load_latest();

  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->position.steps_done, 4);
  EXPECT_THAT(warnings_, ElementsAre("checkpoint passed over: " + (torn / "state.json").string() +
                                         ": is missing or cannot be read",
                                     "checkpoint passed over: " + of_another.string() +
                                         ": its position in the training cannot be read"));
}

TEST_F(CheckpointStoreTest, NamesThemAllWhereNoneIsGood) {
  const fs::path only = store().save(state_after(4), position_after(4), 3);
  StateDict complete = read_state_folder(only);
  complete.put("position", nlohmann::json::object());
  write_state_folder(only, complete);

  try {
    load_latest();
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(std::string(error.what()),
              (scratch_ / "final").string() +
                  ": none of the checkpoints can be used; restore one from a copy, or delete this "
                  "folder to train from the beginning\n" +
                  only.string() + ": its position in the training cannot be read");
  }
  EXPECT_THAT(warnings_, ElementsAre("checkpoint passed over: " + only.string() +
                                     ": its position in the training cannot be read"));
}

}  // namespace
}  // namespace treadle
