#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/document.h>
#include <treadle/host/run/runtime.h>
#include <treadle/host/run/workflow_run.h>

namespace treadle {

/// A document of several stages, each a training (or search), predictions or an evaluation, which
/// take files of each other: "stage:pretrain/model.safetensors" anywhere in a stage is the file of
/// the stage it names, which runs before.
///
///     {"treadle": 1, "name": "distil", "data": {"use": "csv", "path": "x.csv", "target": "y"},
///      "stages": {
///        "teacher": {"run": {"model": {"use": "mlp", "hidden": [256]}, …}},
///        "answers": {"predict": {"model": "stage:teacher", "data": "unlabelled.csv"}},
///        "student": {"run": {"data": {"path": "stage:answers/predictions.csv", …}, …}},
///        "score": {"evaluate": {"model": "stage:student", "data": "test.csv"}}}}
///
/// The document's other keys are those of every "run", whose own keys are merged into them (JSON
/// merge patch, RFC 7396: null removes one).
class Pipeline {
 public:
  enum class Kind { kRun, kPredict, kEvaluate };

  struct Stage {
    std::string name;
    Kind kind = Kind::kRun;
    nlohmann::json content;          ///< of a "run" the whole document
    std::vector<std::string> after;  ///< the stages whose files it takes, sorted
  };

  /// Whether a document has stages, so that it is read as a pipeline.
  static bool is_pipeline(const nlohmann::json& document);
  /// Throws a DocumentError with every problem: stages that do not exist, a cycle, keys that are
  /// none, names that cannot be a folder's.
  static Pipeline read(std::shared_ptr<const Document> document);
  /// The same, and all problems of the stages' documents beside the pipeline's own: what
  /// expect_stages() finds.
  static Pipeline read(std::shared_ptr<const Document> document, const Runtime& runtime);

  const std::string& name() const { return name_; }
  /// In an order in which they may run; independent ones as the document has them.
  const std::vector<Stage>& stages() const { return stages_; }
  const nlohmann::json& document() const { return document_->value(); }
  const Document& source() const { return *document_; }

  /// Graphviz source.
  std::string picture() const;

 private:
  static Pipeline read(std::shared_ptr<const Document> document, const Runtime* runtime);

  std::string name_;
  std::shared_ptr<const Document> document_;
  std::vector<Stage> stages_;
};

/// Checks the documents of all stages. Throws a DocumentError with every problem of each, by its
/// place in the pipeline's document ("/stages/a/run/optimizer"); without any, what else keeps a
/// stage from running, with its name.
void expect_stages(const Runtime& runtime, const Pipeline& pipeline);

struct PipelineOutcome {
  std::filesystem::path folder;
  PipelineResult result;
};

/// Runs the stages, those that do not depend on each other in the document's order. Makes the
/// folder `<name>-<time>` in options.output, with a run's folder for each stage in "stages" and
/// result.json at the end. Throws what the first stage throws that fails, with its name; stages
/// that do not depend on it are still run.
///
/// A stage is not run again where `from`, the folder of an earlier pipeline, has it finished with
/// the same inputs (its document, the content of its data, and the files it takes from others), and
/// its output is unchanged.
PipelineOutcome run_pipeline(const Runtime& runtime, const Pipeline& pipeline,
                             const RunOptions& options = {},
                             const std::filesystem::path& from = {});

/// Whether a folder is a pipeline's.
bool is_pipeline_folder(const std::filesystem::path& folder);
/// Of several processes, whether that of rank 0 is: the others need not have it. Null: the same.
bool is_pipeline_folder(const std::filesystem::path& folder, Communicator* communicator);

/// The folder with which a run goes on that was stopped: its own, or of a stage that of its
/// pipeline.
std::filesystem::path folder_to_resume(const std::filesystem::path& run);

/// Goes on with a pipeline that was stopped or failed: finished stages whose inputs are the same
/// stay, a stage that was stopped goes on as resume_run() does, and the others are run. One that is
/// finished has its result. Throws StorageError while another process works on the pipeline.
PipelineOutcome resume_pipeline(const Runtime& runtime, const std::filesystem::path& folder,
                                const RunOptions& options = {});

}  // namespace treadle
