#include "model/saved_model.h"

#include <array>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_text.h>
#include <treadle/base/problem.h>
#include <treadle/core/model/quantized_weights.h>
#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/run/checkpoint_store.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/state_folder.h>
#include <treadle/tensor/safetensors.h>

#include "outputs/output_stages.h"
#include "store/model_bundle.h"

namespace treadle::internal {

namespace {

/// What plugins.lock of a run says; empty where it is lost or damaged: the names in the document
/// have to do.
PluginLock lock_of_run(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "plugins.lock";
  if (!std::filesystem::exists(file))
    return {};
  try {
    return PluginLock::read(file);
  } catch (const DocumentError&) {
    return {};
  }
}

/// Reads a document of a run. Where it does not fit what there is, a plugin that is missing is the
/// better reason than the components which are missing with it.
template <typename Read>
auto naming_missing_plugins(const PluginLock& lock, const PluginCatalog& catalog, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const DocumentError&) {
    lock.expect_present(catalog);
    throw;
  }
}

}  // namespace

ResolvedWorkflow read_run_document(const Runtime& runtime, const std::filesystem::path& folder,
                                   std::span<const std::string> overrides) {
  return naming_missing_plugins(lock_of_run(folder), runtime.catalog(),
                                [&] { return runtime.read(folder / "workflow.json", overrides); });
}

namespace {

/// The document that a run's model was made by.
std::filesystem::path model_document(const std::filesystem::path& run) {
  const std::filesystem::path best = RunFolder::best_document_of(run);
  return std::filesystem::exists(best) ? best : run / "workflow.json";
}

/// How to end a run where it was stopped: its length so far, as for `--set`. Empty where
/// it has no checkpoint of its model's training.
std::string end_here(const std::filesystem::path& run) {
  const std::filesystem::path newest =
      CheckpointStore(RunFolder::checkpoints_of(run, "final")).newest();
  if (newest.empty())
    return "";
  // Of a damaged file nothing is known.
  const auto part_of = [](const std::filesystem::path& file, const char* pointer) {
    std::ifstream in(file);
    const auto content = parse_json(in);
    const nlohmann::json::json_pointer place(pointer);
    return content.is_object() && content.contains(place) ? content.at(place) : nlohmann::json();
  };
  const auto in_checkpoint = [&](const char* pointer) {
    return part_of(newest / "state.json", pointer);
  };
  const nlohmann::json epochs = in_checkpoint("/state/values/position/epochs_done");
  const nlohmann::json steps = in_checkpoint("/state/values/position/steps_done");
  const bool is_finished = in_checkpoint("/state/values/position/finished") == true;
  if (is_finished || !epochs.is_number_integer() || !steps.is_number_integer())
    return "";
  if (!part_of(run / "workflow.json", "/training/epochs").is_number_integer())
    return "training.max_steps=" + steps.dump();
  const bool is_within = in_checkpoint("/state/values/position/at_epoch_end") != true;
  return "training.epochs=" + std::to_string(epochs.get<std::int64_t>() + (is_within ? 1 : 0));
}

void expect_model(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "workflow.json")) {
    throw StorageError(run.string() + ": is not the folder of a run: it has no workflow.json");
  }
  if (!std::filesystem::exists(run / "model.safetensors")) {
    const std::string end = end_here(run);
    throw StorageError(
        run.string() +
        (end.empty()
             ? ": has no model: the run is not finished (continue it with \"workflow-runner "
               "resume\"), or it only scored folds (\"refit\": false)"
             : ": has no model, as the run is not finished: continue it with \"workflow-runner "
               "resume\", or end it where it is: workflow-runner run --from " +
                   run.string() + " --set " + end));
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A bundle holds its members as a part of its preprocessing, each with its document and weights,
// and beside them the run's ensemble.json.
constexpr const char* kEnsemble = "ensemble";
constexpr const char* kOutputs = "outputs";
// Likewise the models of folds, by their numbers, with the document of the run.
constexpr const char* kFolds = "folds";
constexpr const char* kRecord = "record";
constexpr const char* kMemberDocument = "workflow";
constexpr const char* kMemberPreprocessing = "preprocessing";
constexpr const char* kMemberWeights = "weights";

/// What ensemble.json says.
struct ListedEnsemble {
  EnsembleResult record;
  std::vector<std::filesystem::path> members = {};  ///< their folders
  PredictionPool pool = {};
};

/// Nothing where the run has no ensemble.json.
std::optional<ListedEnsemble> ensemble_in(const std::filesystem::path& run) {
  const std::filesystem::path file = RunFolder::ensemble_of(run);
  if (!std::filesystem::exists(file))
    return std::nullopt;
  try {
    ListedEnsemble listed{ensemble_result_from(parse_json(text_of(file)), file.string())};
    listed.pool = read_pool(listed.record);
    for (const EnsembleResult::Member& member : listed.record.members)
      listed.members.push_back(run / member.path);
    return listed;
  } catch (const StorageError& error) {
    throw StorageError(file.string() + ": does not list the members of an ensemble (" +
                       error.what() +
                       "); restore it from a copy of the run, or remove it to "
                       "predict with the best trial alone");
  }
}

/// Of a member in a folder, or in a bundle.
ResolvedWorkflow member_document(const Runtime& runtime, const std::string& text,
                                 const std::string& name, const std::string& device) {
  const std::shared_ptr<Document> document = Document::parse(text, name);
  apply_override(*document, device_override(device));
  return resolve_workflow(document, runtime.schemas());
}

/// The part of a bundle that has this member.
std::string part_of(const EnsembleResult::Member& member) {
  return std::to_string(member.trial);
}

StateDict packed(const std::filesystem::path& folder, NamedTensors weights) {
  StateDict state;
  state.put(kMemberPreprocessing, read_preprocessing(folder));
  StateDict tensors;
  for (auto& [tensor_name, tensor] : weights)
    tensors.put(tensor_name, std::move(tensor));
  state.put(kMemberWeights, std::move(tensors));
  return state;
}

StateDict packed_member(const std::filesystem::path& member, NamedTensors weights) {
  StateDict state = packed(member, std::move(weights));
  state.put(kMemberDocument, nlohmann::json(text_of(RunFolder::document_of(member))));
  return state;
}

SavedModel unpacked(ResolvedWorkflow workflow, const StateDict& packed) {
  SavedModel model{std::move(workflow), packed.part(kMemberPreprocessing), {}};
  for (const auto& [name, tensor] : packed.part(kMemberWeights).tensors())
    model.weights.emplace(name, tensor);
  return model;
}

std::vector<SavedModel> members_in(const Runtime& runtime, const StateDict& ensemble,
                                   const EnsembleResult& record, const std::string& name,
                                   const std::string& device) {
  std::vector<SavedModel> members;
  for (const EnsembleResult::Member& listed : record.members) {
    const std::string number = part_of(listed);
    const StateDict& member = ensemble.part(number);
    members.push_back(
        unpacked(member_document(runtime, member.value(kMemberDocument).get<std::string>(),
                                 name + ": member " + number, device),
                 member));
  }
  return members;
}

SavedModel saved_in_bundle(const Runtime& runtime, const std::filesystem::path& file,
                           const std::string& device) {
  ModelBundle bundle = read_model_bundle(file);
  const std::string name = file.string();
  const PluginLock lock = PluginLock::parse(bundle.plugins, name + ": plugins");
  ResolvedWorkflow workflow = naming_missing_plugins(lock, runtime.catalog(), [&] {
    const std::shared_ptr<Document> document =
        Document::parse(bundle.document, name + ": workflow");
    apply_override(*document, device_override(device));
    return resolve_workflow(document, runtime.schemas());
  });
  SavedModel model{std::move(workflow), std::move(bundle.preprocessing), std::move(bundle.weights)};
  if (model.preprocessing.has_part(kOutputs))
    model.outputs = model.preprocessing.part(kOutputs);
  if (model.preprocessing.has_part(kFolds)) {
    const StateDict& folds = model.preprocessing.part(kFolds);
    for (std::size_t i = 1; folds.has_part(std::to_string(i)); ++i)
      model.folds.push_back(unpacked(model.workflow, folds.part(std::to_string(i))));
  }
  if (!model.preprocessing.has_part(kEnsemble))
    return model;
  const StateDict& ensemble = model.preprocessing.part(kEnsemble);
  try {
    const EnsembleResult record = ensemble_result_from(ensemble.value(kRecord), name);
    model.pool = read_pool(record);
    model.members = naming_missing_plugins(lock, runtime.catalog(), [&] {
      return members_in(runtime, ensemble, record, name, device);
    });
  } catch (const nlohmann::json::exception&) {
    throw StorageError(name +
                       ": does not list the members of its ensemble; export the run again: "
                       "workflow-runner runs export RUN -o FILE");
  }
  return model;
}

}  // namespace

ResolvedWorkflow read_model_document(const Runtime& runtime, const std::filesystem::path& folder,
                                     const std::string& device) {
  const std::array overrides{device_override(device)};
  return naming_missing_plugins(lock_of_run(folder), runtime.catalog(),
                                [&] { return runtime.read(model_document(folder), overrides); });
}

SavedModel read_saved_model(const Runtime& runtime, const std::filesystem::path& saved,
                            const std::string& device) {
  if (std::filesystem::is_regular_file(saved))
    return saved_in_bundle(runtime, saved, device);
  expect_model(saved);
  ResolvedWorkflow workflow = read_model_document(runtime, saved, device);
  SavedModel model{std::move(workflow), read_preprocessing(saved),
                   read_safetensors(saved / "model.safetensors").tensors};
  if (has_outputs(model.workflow))
    model.outputs = read_state_folder(RunFolder::outputs_of(saved));
  for (const std::filesystem::path& fold : folds_in(saved)) {
    model.folds.push_back({model.workflow, read_preprocessing(fold),
                           read_safetensors(RunFolder::weights_of(fold)).tensors});
  }
  std::optional<ListedEnsemble> ensemble = ensemble_in(saved);
  if (!ensemble)
    return model;
  for (const std::filesystem::path& member : ensemble->members) {
    expect_model(member);
    const std::filesystem::path file = RunFolder::document_of(member);
    model.members.push_back(
        {naming_missing_plugins(
             lock_of_run(saved), runtime.catalog(),
             [&] { return member_document(runtime, text_of(file), file.string(), device); }),
         read_preprocessing(member), read_safetensors(RunFolder::weights_of(member)).tensors});
  }
  model.pool = std::move(ensemble->pool);
  return model;
}

TensorFile read_weights(const std::filesystem::path& file) {
  TensorFile content = read_safetensors(file, UnknownDtypes::kLeaveOut);
  if (is_model_bundle(content))
    return {read_model_bundle(file, std::move(content)).weights, {}};
  return content;
}

std::vector<std::filesystem::path> folds_in(const std::filesystem::path& folder) {
  const std::filesystem::path all = RunFolder::folds_of(folder);
  std::error_code none;
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(all, none))
    ++count;
  std::vector<std::filesystem::path> folds;
  for (std::size_t i = 1; i <= count; ++i) {
    folds.push_back(all / std::to_string(i));
    if (!std::filesystem::is_directory(folds.back())) {
      throw StorageError(all.string() + ": has no model of fold " + std::to_string(i) +
                         ", with which the run's outputs predict; restore it from a copy of the "
                         "run, or train it again: workflow-runner run " +
                         (folder / "workflow.json").string());
    }
  }
  return folds;
}

StateDict read_preprocessing(const std::filesystem::path& folder) {
  constexpr const char* kRemedy =
      "; restore preprocessing/ and model.safetensors from a copy of the run, or train it again: "
      "workflow-runner run ";
  const std::string remedy = kRemedy + (folder / "workflow.json").string();
  try {
    StateDict saved = read_state_folder(folder / "preprocessing");
    const std::filesystem::path weights = folder / "model.safetensors";
    if (saved.value(kModelChecksum) != hash_file(weights)) {
      throw StorageError(weights.string() +
                         ": is damaged, or belongs to another run: its checksum does not match");
    }
    return saved;
  } catch (const StorageError& error) {
    throw StorageError(error.what() + remedy);
  }
}

}  // namespace treadle::internal

namespace treadle {
namespace {

using Names = std::set<std::string, std::less<>>;

/// The names of the model's buffers, as the run wrote them into its `weights`.
Names buffers_in(const TensorFile& weights) {
  const auto names = weights.metadata.find(internal::kModelBuffers);
  if (names == weights.metadata.end()) {
    throw StorageError(
        "does not name its buffers, which keep their dtype: an earlier version of Treadle wrote "
        "it; export the model without another dtype, or train it again");
  }
  try {
    return nlohmann::json::parse(names->second).get<Names>();
  } catch (const nlohmann::json::exception&) {
    throw StorageError("does not name its buffers as a list of texts; restore it from a copy");
  }
}

/// The weights of a run in `dtype`, or as they are.
NamedTensors weights_to_export(const std::filesystem::path& weights,
                               std::optional<WeightDtype> dtype) {
  TensorFile trained = read_safetensors(weights);
  if (!dtype)
    return std::move(trained.tensors);
  try {
    return convert_weights(trained.tensors, buffers_in(trained), *dtype);
  } catch (const StorageError& error) {
    throw StorageError(weights.string() + ": " + error.what());
  }
}

}  // namespace

void export_model(const std::filesystem::path& run_folder, const std::filesystem::path& file,
                  std::optional<WeightDtype> dtype) {
  internal::expect_model(run_folder);
  const std::filesystem::path lock = run_folder / "plugins.lock";
  StateDict preprocessing = internal::read_preprocessing(run_folder);
  if (const auto ensemble = internal::ensemble_in(run_folder)) {
    StateDict packed;
    packed.put(internal::kRecord, to_json(ensemble->record));
    for (std::size_t i = 0; i < ensemble->members.size(); ++i) {
      const std::filesystem::path& member = ensemble->members[i];
      internal::expect_model(member);
      packed.put(
          internal::part_of(ensemble->record.members[i]),
          internal::packed_member(member, weights_to_export(RunFolder::weights_of(member), dtype)));
    }
    preprocessing.put(internal::kEnsemble, std::move(packed));
  }
  StateDict folds;
  for (const std::filesystem::path& fold : internal::folds_in(run_folder)) {
    folds.put(fold.filename().string(),
              internal::packed(fold, weights_to_export(RunFolder::weights_of(fold), dtype)));
  }
  if (!folds.empty())
    preprocessing.put(internal::kFolds, std::move(folds));
  const std::filesystem::path outputs = RunFolder::outputs_of(run_folder);
  if (std::filesystem::exists(outputs))
    preprocessing.put(internal::kOutputs, read_state_folder(outputs));
  internal::write_model_bundle(
      file, {internal::text_of(internal::model_document(run_folder)),
             std::filesystem::exists(lock) ? internal::text_of(lock) : PluginLock().text(),
             std::move(preprocessing), weights_to_export(run_folder / "model.safetensors", dtype)});
}

}  // namespace treadle
