#include <treadle/host/run/checkpoint_store.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/host/run/state_folder.h>

// The checkpoints of one training, each a folder "step-000000000123". Saving happens on the run's
// writer thread (StateSaver) while the training goes on; before a training, on its own thread. One
// call at a time.
//
// At every instant at least one good checkpoint exists, once there was one. save() writes the new
// folder under a temporary name, syncs its files and renames it (write_state_folder()); only then
// are old ones deleted. A kill in between leaves too many checkpoints, or a "….tmp" that
// RunFolder::open() removes. When the disk is full, the older checkpoints are as they were.
//
// Content: "model" (weights under their plain names, in a file of their own, which other programs
// can read), "workflow" (all other state of the training) and "position". load_latest() puts
// "model" back into the state.

namespace treadle {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
// Leading zeros make the order of names the order of steps: all() sorts paths.
constexpr int kDigits = 12;

std::string folder_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(
      0, static_cast<std::size_t>(std::max<int>(0, kDigits - static_cast<int>(digits.size()))),
      '0');
  return std::string(kPrefix) + digits;
}

// Exact, so that temporary folders ("step-….tmp") and files of people are never read or deleted.
bool is_checkpoint(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() == kPrefix.size() + kDigits && name.rfind(kPrefix, 0) == 0 &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder) : folder_(std::move(folder)) {}

fs::path CheckpointStore::save(const StateDict& state, const engine::TrainingPosition& position,
                               int keep) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    throw StorageError(folder_.string() + ": cannot be made for checkpoints: " + error.message());
  }
  StateDict complete;
  complete.put("position", nlohmann::json({{"epochs_done", position.epochs_done},
                                           {"steps_done", position.steps_done},
                                           {"at_epoch_end", position.at_epoch_end},
                                           {"finished", position.finished}}));
  // The weights are written once, under their plain names.
  StateDict without_model(state.version());
  for (const auto& [name, value] : state.values().items())
    without_model.put(name, value);
  for (const auto& [name, tensor] : state.tensors())
    without_model.put(name, tensor);
  for (const auto& [name, part] : state.parts())
    (name == "model" ? complete : without_model).put(name, part);
  complete.put("workflow", std::move(without_model));
  // Two saves after the same step have one name, for example when a training that was stopped
  // during an evaluation goes on. The newer folder then changes places with the older one.
  const fs::path folder = folder_ / folder_name(position.steps_done);
  write_state_folder(folder, complete);
  // A folder that cannot be deleted is no reason to fail a training: the next save tries again.
  std::vector<fs::path> kept = all();
  while (kept.size() > static_cast<std::size_t>(std::max(keep, 1))) {
    fs::remove_all(kept.front(), error);
    kept.erase(kept.begin());
  }
  return folder;
}

std::optional<CheckpointStore::Loaded> CheckpointStore::load_latest(
    const std::function<void(const std::string&)>& warn) const {
  const std::vector<fs::path> candidates = all();
  std::string reasons;
  const auto pass_over = [&](const std::string& reason) {
    warn("checkpoint passed over: " + reason);
    reasons += "\n" + reason;
  };
  // An older checkpoint is as good as the newest one: the steps since then are repeated with the
  // same bits.
  for (auto path = candidates.rbegin(); path != candidates.rend(); ++path) {
    try {
      StateDict complete = read_state_folder(*path);
      Loaded loaded{complete.part("workflow"), {}, *path};
      if (complete.has_part("model"))
        loaded.state.put("model", complete.part("model"));
      const nlohmann::json& position = complete.value("position");
      loaded.position = {position.at("epochs_done").get<std::int64_t>(),
                         position.at("steps_done").get<std::int64_t>(),
                         position.at("at_epoch_end").get<bool>(),
                         position.at("finished").get<bool>()};
      return loaded;
    } catch (const StorageError& error) {
      pass_over(error.what());
    } catch (const nlohmann::json::exception&) {
      pass_over(path->string() + ": its position in the training cannot be read");
    }
  }
  // Never a silent start from the beginning: people may be able to restore what hours of training
  // made. Unless another process took the folder away meanwhile, with a trial that has ended.
  std::error_code error;
  if (!candidates.empty() && fs::exists(folder_, error)) {
    throw StorageError(folder_.string() +
                       ": none of the checkpoints can be used; restore one from a copy, or delete "
                       "this folder to train from the beginning" +
                       reasons);
  }
  return std::nullopt;
}

fs::path CheckpointStore::newest() const {
  const std::vector<fs::path> folders = all();
  return folders.empty() ? fs::path() : folders.back();
}

std::vector<fs::path> CheckpointStore::all() const {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    if (is_checkpoint(entry.path()))
      folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace treadle
