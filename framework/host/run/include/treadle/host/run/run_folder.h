#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace treadle {

/// The folder of one run, and the only place that defines the names of its files.
///
/// While it exists, the folder is locked: a second process that opens it gets an error.
class RunFolder {
 public:
  /// Makes `<output>/<name>-<date>-<time>`; a number follows when that is taken. Throws
  /// StorageError with the reason when it cannot.
  static RunFolder create(const std::filesystem::path& output, const std::string& name);
  /// Opens an existing run and clears away what a kill left half written. Throws StorageError when
  /// it is none, or another process has it.
  static RunFolder open(const std::filesystem::path& folder);
  /// Locks a folder that has runs and is none itself: a pipeline's. Throws StorageError when
  /// another process has it.
  static RunFolder lock(const std::filesystem::path& folder);
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path document() const { return document_of(path_); }
  // Of a model in some folder: of a run, or of a member of its ensemble.
  static std::filesystem::path document_of(const std::filesystem::path& folder) {
    return folder / "workflow.json";
  }
  static std::filesystem::path weights_of(const std::filesystem::path& folder) {
    return folder / "model.safetensors";
  }
  static std::filesystem::path preprocessing_of(const std::filesystem::path& folder) {
    return folder / "preprocessing";
  }
  static std::filesystem::path outputs_of(const std::filesystem::path& folder) {
    return folder / "outputs";
  }
  /// Of a run whose outputs predict with the models of its folds: a folder for each, by its number
  /// from 1, with weights and preprocessing.
  static std::filesystem::path folds_of(const std::filesystem::path& folder) {
    return folder / "folds";
  }
  /// Of a run whose model is an ensemble: its members, with their weights.
  static std::filesystem::path ensemble_of(const std::filesystem::path& folder) {
    return folder / "ensemble.json";
  }
  /// Of a run that searched: the document of its best trial, which its model has.
  static std::filesystem::path best_document_of(const std::filesystem::path& folder) {
    return folder / "best.json";
  }
  /// Of a run that searched the structure of its model: the document of the network it chose.
  static std::filesystem::path architecture_of(const std::filesystem::path& folder) {
    return folder / "architecture.json";
  }
  std::filesystem::path environment() const { return path_ / "environment.json"; }
  /// Of a run whose search is shared: by what others know that they have the same folder.
  static std::filesystem::path study_token_of(const std::filesystem::path& folder) {
    return folder / "study.id";
  }
  /// Of a run that searches: a file here cancels the trial of its name.
  std::filesystem::path cancelled(std::int64_t trial) const {
    return cancelled_of(has_shared_trials() ? trials_ : path_, trial);
  }
  static std::filesystem::path cancelled_of(const std::filesystem::path& folder,
                                            std::int64_t trial) {
    return folder / "cancel" / std::to_string(trial);
  }
  /// Of a run that searches: what its trials came to.
  std::filesystem::path search_journal() const { return path_ / "search.journal"; }
  std::filesystem::path plugin_lock() const { return path_ / "plugins.lock"; }
  std::filesystem::path result() const { return result_of(path_); }
  /// For a run that need not be opened, because nothing is written into it.
  static std::filesystem::path result_of(const std::filesystem::path& folder) {
    return folder / "result.json";
  }
  std::filesystem::path history() const { return history_of(path_); }
  /// For a run that need not be opened, because it may still be running.
  static std::filesystem::path history_of(const std::filesystem::path& folder) {
    return folder / "history.csv";
  }
  std::filesystem::path events() const { return path_ / "events.jsonl"; }
  /// Tables of the result that are too large for it.
  std::filesystem::path tables() const { return path_ / "tables"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  /// Of a run that explains its model: the reasons.
  std::filesystem::path explanation() const { return path_ / "explain.json"; }
  std::filesystem::path weights() const { return weights_of(path_); }
  /// Transforms, data dictionaries, shapes: what the model needs beside its weights.
  std::filesystem::path preprocessing() const { return preprocessing_of(path_); }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path checkpoints(const std::string& fit) const {
    return checkpoints_of(root_of(fit), fit);
  }
  static std::filesystem::path checkpoints_of(const std::filesystem::path& folder,
                                              const std::string& fit) {
    return folder / "checkpoints" / fit;
  }
  std::filesystem::path fit_results() const { return path_ / "fits"; }
  /// What a finished training came to.
  std::filesystem::path fit_result(const std::string& fit) const {
    return root_of(fit) / "fits" / fit;
  }

  /// The trials of a search are kept in the folder of another run from now on, with which it is
  /// shared.
  void share_trials_of(std::filesystem::path run) { trials_ = std::move(run); }
  /// Whether other processes work on fits of this folder.
  bool has_shared_trials() const { return !trials_.empty(); }

 private:
  RunFolder(std::filesystem::path path, int lock);

  const std::filesystem::path& root_of(const std::string& fit) const;

  std::filesystem::path path_;
  std::filesystem::path trials_;  // of the run whose search this one joins
  int lock_ = -1;
};

}  // namespace treadle
