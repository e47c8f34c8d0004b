#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/components/state_dict.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// A resolved document, or its identity, as this version of Treadle writes it: a saved one may be
/// of a version with fewer parameters. Those that are new are at their defaults, with which all is
/// as before.
nlohmann::json with_new_parameters(const PluginRegistry& registry, nlohmann::json document);

/// The part of a resolved document that a run's bits depend on: without its name, its observers,
/// the number of workers, the device, extensions, and the paths of files whose content is compared.
nlohmann::json document_identity(const PluginRegistry& registry, const nlohmann::json& resolved);

/// A value in which two documents differ.
struct DocumentChange {
  std::string pointer;
  std::string text;  ///< "/seed was 5 and is now 6"
};
std::vector<DocumentChange> document_changes(const nlohmann::json& before,
                                             const nlohmann::json& now);

/// Throws StorageError when the documents differ: a run that went on would be a mixture of two.
/// `place` is what was made with the document `before`.
void expect_same_document(const std::filesystem::path& place, const nlohmann::json& before,
                          const nlohmann::json& now, const RunFolder& folder);

/// What a run began with: environment.json, or what checkpoints and records of trainings hold of it
/// where that is lost, which `note` hears of. Nothing when no training has saved anything.
std::optional<nlohmann::json> beginning_of(const RunFolder& folder,
                                           const std::function<void(const std::string&)>& note);

/// What the bits of a run depend on: its environment and its document.
class RunConditions {
 public:
  RunConditions() = default;
  /// From environment_record() and document_identity(); `choices` were made for the user where the
  /// document left something open.
  RunConditions(nlohmann::json environment, nlohmann::json document, nlohmann::json choices)
      : environment_(std::move(environment)),
        document_(std::move(document)),
        choices_(std::move(choices)) {}

  const nlohmann::json& environment() const { return environment_; }
  /// Its identity.
  const nlohmann::json& document() const { return document_; }
  /// Of a resumed run those that it began with: its document has them written out by now.
  const nlohmann::json& choices() const { return choices_; }
  /// As environment.json has them.
  std::string text() const { return json().dump(2) + "\n"; }

  /// Refuses, with a StorageError, to go on under other conditions than those that the run began
  /// with, unless they are allowed; then they are noted. Takes over what is known of the beginning.
  void compare_with_beginning(const RunFolder& folder, bool allow_differences,
                              const std::function<void(const std::string&)>& note);

  /// What checkpoints and records keep, so that nothing of another run is taken for this one's.
  /// `fit_document` is the identity of a document that only this fit has; null: it has the run's.
  StateDict marks(const std::string& history, const nlohmann::json& fit_document) const;
  /// Expects `state`, kept at `place`, to have such marks. Throws StorageError.
  void recognize(const StateDict& state, const nlohmann::json& fit_document,
                 const std::filesystem::path& place, const RunFolder& folder) const;

 private:
  nlohmann::json json() const;
  void expect_data_of(const nlohmann::json& before, const std::string& differences,
                      const RunFolder& folder) const;

  nlohmann::json environment_;
  nlohmann::json document_;
  nlohmann::json choices_ = nlohmann::json::array();
};

}  // namespace treadle::internal
