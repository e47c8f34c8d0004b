#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/engine/run_context.h>

namespace treadle {

/// The checkpoints of one training: `step-<number>/` folders, newest last. "Latest" means: the
/// highest step whose files verify.
class CheckpointStore {
 public:
  /// `folder` is made at the first save.
  explicit CheckpointStore(std::filesystem::path folder);

  /// Saves and then deletes all but the newest `keep`; returns the checkpoint's folder. When saving
  /// fails the older ones are as they were: throws StorageError.
  std::filesystem::path save(const StateDict& state, const engine::TrainingPosition& position,
                             int keep);

  struct Loaded {
    StateDict state;
    engine::TrainingPosition position;
    std::filesystem::path folder;
  };
  /// The latest good checkpoint. `warn` receives each damaged one that was skipped. Throws
  /// StorageError naming them all when there are some and none is good.
  std::optional<Loaded> load_latest(const std::function<void(const std::string&)>& warn) const;

  /// The folder of the newest checkpoint, good or not; empty when there is none.
  std::filesystem::path newest() const;
  /// The folders of all, good or not, the oldest first.
  std::vector<std::filesystem::path> all() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace treadle
