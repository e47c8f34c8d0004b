#include <treadle/host/run/checkpoint_store.h>

#include <algorithm>

#include <treadle/base/error.h>
#include <treadle/core/safetensors.h>
#include <treadle/host/run/state_folder.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr int kDigits = 12;

std::string folder_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(
      0, static_cast<std::size_t>(std::max<int>(0, kDigits - static_cast<int>(digits.size()))),
      '0');
  return std::string(kPrefix) + digits;
}

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
  complete.put("workflow", state);
  if (state.has_part("model"))
    complete.put("model", state.part("model"));
  complete.put("position", nlohmann::json({{"epochs_done", position.epochs_done},
                                           {"steps_done", position.steps_done},
                                           {"at_epoch_end", position.at_epoch_end},
                                           {"finished", position.finished}}));
  if (state.has_part("model")) {
    // The weights are written once, under their plain names; the workflow's state refers to them.
    StateDict without(state.version());
    for (const auto& [name, value] : state.values().items())
      without.put(name, value);
    for (const auto& [name, tensor] : state.tensors())
      without.put(name, tensor);
    for (const auto& [name, part] : state.parts()) {
      if (name != "model")
        without.put(name, part);
    }
    complete.put("workflow", std::move(without));
  }
  const fs::path folder = folder_ / folder_name(position.steps_done);
  write_state_folder(folder, complete);
  if (state.has_part("best_model")) {
    write_safetensors(folder_ / "best.safetensors", {state.part("best_model").tensors(), {}});
  }
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
      warn(std::string("checkpoint passed over: ") + error.what());
      reasons += std::string("\n") + error.what();
    } catch (const nlohmann::json::exception&) {
      reasons += "\n" + path->string() + ": its position in the training cannot be read";
    }
  }
  if (!candidates.empty()) {
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
