#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_text.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/run_folder.h>

#include "context/run_conditions.h"
#include "context/shared_run.h"
#include "data/dataset.h"
#include "document/document_slots.h"
#include "pipeline/stage_document.h"
#include "pipeline/stage_reference.h"

// A pipeline's folder has pipeline.json, and for each stage "stages/NAME.json" (what its inputs
// were, and where it is) beside "stages/NAME-<time>", the folder of an ordinary run, or of
// predictions. The record of a stage marks it finished, and is written last.
//
// Inputs of a stage: its document with the references as they are written, and the hash of each
// file that one stands for; the content of its data; the versions of what computes. Where a
// finished stage has the same, its results would be the same bits.
//
// Of several processes (RunOptions::communicator) each has all stages in a folder of its own, and
// does the same with them. Of a run rank 0 alone has the files, which it sends to the others.

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return parse_json(file);
}

constexpr const char* kStages = "stages";

fs::path pipeline_document_of(const fs::path& folder) {
  return folder / "pipeline.json";
}

/// Files of a pipeline that no stage takes, and no process goes on from.
const std::set<fs::path> kNotSent = {"report.html", "events.jsonl", "tables", "checkpoints",
                                     "fits"};

/// A pipeline of rank 0, which each other process has a copy of in its own folder.
fs::path copied(const RunOptions& options, const fs::path& folder, const char* name) {
  if (options.communicator == nullptr)
    return folder;
  const fs::path own = options.is_first_rank() ? folder : options.output / name;
  internal::send_files(*options.communicator, own, kNotSent);
  return own;
}

/// Adds to what a stage throws which it was, and a remedy; the kind stays.
template <typename Work>
decltype(auto) naming_stage(const std::string& name, const std::string& remedy, Work&& work) {
  const auto text = [&](const std::exception& error) {
    return "stage " + name + ": " + error.what() + remedy;
  };
  try {
    return std::forward<Work>(work)();
  } catch (const Interrupted&) {
    throw;
  } catch (const DocumentError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (!problem.pointer.starts_with(internal::run_pointer(name)))
        problem.message = "stage " + name + ": " + problem.message;
      problem.message += remedy;
    }
    throw DocumentError(std::move(problems));
  } catch (const UsageError& error) {
    throw UsageError(text(error));
  } catch (const PluginError& error) {
    throw PluginError(text(error));
  } catch (const DataError& error) {
    throw DataError(text(error));
  } catch (const TrainingError& error) {
    throw TrainingError(text(error));
  } catch (const StorageError& error) {
    throw StorageError(text(error));
  }
}

template <typename Work>
std::vector<Problem> problems_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const DocumentError& error) {
    return error.problems();
  }
  return {};
}

class PipelineRun {
 public:
  PipelineRun(const Runtime& runtime, const Pipeline& pipeline, const RunOptions& options,
              fs::path folder)
      : runtime_(runtime),
        pipeline_(pipeline),
        options_(options),
        // The paths in a stage's document are relative to the pipeline's document.
        folder_(fs::absolute(folder).lexically_normal()) {
    options_.output = folder_ / kStages;
    options_.trace.clear();
  }

  PipelineOutcome run(const fs::path& from) {
    if (!from.empty())
      from_ = fs::absolute(copied(options_, from, "reused")).lexically_normal();
    make_folder(options_.output);
    std::exception_ptr failure;
    for (const Pipeline::Stage& stage : pipeline_.stages()) {
      const bool can_run = std::all_of(stage.after.begin(), stage.after.end(),
                                       [&](const auto& name) { return done_.count(name) > 0; });
      if (!can_run)
        continue;
      if (internal::any_says(options_.communicator, options_.stop.stop_requested()))
        throw Interrupted("stopped before the stage " + stage.name);
      try {
        done_[stage.name] = naming_stage(stage.name, remedy(), [&] { return run_placed(stage); });
      } catch (const Interrupted&) {
        throw;
      } catch (...) {
        if (!failure)
          failure = std::current_exception();
      }
    }
    if (failure)
      std::rethrow_exception(failure);
    PipelineResult result{pipeline_.name(), {}};
    for (const Pipeline::Stage& stage : pipeline_.stages())
      result.stages.push_back(done_.at(stage.name).result);
    write_file_atomically(RunFolder::result_of(folder_), to_json(result).dump(2) + "\n");
    return {folder_, std::move(result)};
  }

 private:
  struct Done {
    fs::path folder;
    StageResult result;
  };

  static void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw StorageError(folder.string() + ": cannot be made for the stages of a pipeline: " +
                         error.message() + "; make room or permit writing");
    }
  }

  std::string remedy() const {
    return "; other stages are kept: when this is mended, workflow-runner resume " +
           folder_.string() + ", or, with another document, run it with --reuse " +
           folder_.string();
  }

  static fs::path record_of(const fs::path& pipeline, const std::string& stage) {
    return pipeline / kStages / (stage + ".json");
  }

  json content_of(const Pipeline::Stage& stage) const {
    return internal::with_paths(stage.content,
                                [&](const std::string& name) { return done_.at(name).folder; });
  }

  /// Hashes of the files that references stand for; of a folder, of what a model is made of.
  json hashes_of(const json& content) const {
    json hashes = json::object();
    for (const std::string& reference : internal::references_in(content)) {
      const fs::path path = internal::with_paths(reference, [&](const std::string& name) {
                              return done_.at(name).folder;
                            }).get<std::string>();
      std::error_code error;
      const fs::path file = fs::is_directory(path, error) ? path / "model.safetensors" : path;
      hashes[reference] = hash_file(file);
    }
    return hashes;
  }

  ResolvedWorkflow workflow_of(const json& content) const {
    return resolve_workflow(Document::from_json(content, pipeline_.source().folder()),
                            runtime_.schemas());
  }

  json inputs_of(const Pipeline::Stage& stage, const json& content) const {
    json inputs{{"stage", content_that_counts(stage)}, {"files", hashes_of(stage.content)}};
    if (stage.kind == Pipeline::Kind::kRun) {
      const ResolvedWorkflow workflow = workflow_of(content);
      inputs["document"] = internal::document_identity(runtime_.registry(), workflow.resolved);
      internal::budget_for(workflow).run([&] {
        inputs["data"] = internal::Dataset(runtime_, workflow).provider().content_hash();
      });
    } else if (!content.at("data").get<std::string>().empty()) {
      inputs["data"] = hash_file(path_in_document(content.at("data")));
    }
    return inputs;
  }

  /// Without what no result depends on.
  static json content_that_counts(const Pipeline::Stage& stage) {
    json content = stage.content;
    if (stage.kind != Pipeline::Kind::kRun)
      return content;
    content.erase("observers");
    content.erase("extensions");
    if (const auto resources = content.find("resources"); resources != content.end()) {
      resources->erase("workers");
      if (resources->empty())
        content.erase("resources");
    }
    return content;
  }

  /// Hashes of what other stages and people take from one that has finished.
  static json outputs_in(const fs::path& folder) {
    json outputs = json::object();
    for (const char* name :
         {"model.safetensors", "ensemble.json", "predictions.csv", "evaluation.json"}) {
      if (fs::exists(folder / name))
        outputs[name] = hash_file(folder / name);
    }
    return outputs;
  }

  fs::path path_in_document(const json& path) const {
    return pipeline_.source().folder() / path.get<std::string>();
  }

  /// A mistake that only shows with the data is a problem of the pipeline's document, too.
  Done run_placed(const Pipeline::Stage& stage) {
    try {
      return run_stage(stage);
    } catch (const DocumentError& error) {
      if (stage.kind != Pipeline::Kind::kRun)
        throw;
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems)
        problem = internal::placed(pipeline_.source(), stage.name, std::move(problem));
      throw DocumentError(std::move(problems));
    }
  }

  Done run_stage(const Pipeline::Stage& stage) {
    const json content = content_of(stage);
    const json inputs = inputs_of(stage, content);
    if (std::optional<Done> before = finished_before(stage, inputs))
      return *std::move(before);
    const fs::path record = record_of(folder_, stage.name);
    json now{{"inputs", inputs}, {"finished", false}};
    Done done;
    if (stage.kind == Pipeline::Kind::kRun) {
      done = train(stage, content, inputs);
    } else {
      write_file_atomically(record, now.dump(2) + "\n");
      done = use_model(stage, content);
    }
    now["folder"] = done.folder.filename().string();
    now["outputs"] = outputs_in(done.folder);
    now["finished"] = true;
    now["summary"] = to_json(done.result);
    write_file_atomically(record, now.dump(2) + "\n");
    return done;
  }

  /// In this folder, or in that of an earlier pipeline, whose files are then copied.
  std::optional<Done> finished_before(const Pipeline::Stage& stage, const json& inputs) {
    for (const fs::path& pipeline : {folder_, from_}) {
      const json record = pipeline.empty() ? json() : read_json(record_of(pipeline, stage.name));
      if (!record.is_object() || !record.value("finished", false) || record.at("inputs") != inputs)
        continue;
      const fs::path folder = pipeline / kStages / record.at("folder").get<std::string>();
      // Lost, cut or written by somebody else since: made again.
      if (!fs::exists(folder) || outputs_in(folder) != record.value("outputs", json()))
        continue;
      Done done{folder_ / kStages / folder.filename(),
                stage_result_from(record.at("summary"), record_of(pipeline, stage.name))};
      if (pipeline != folder_) {
        fs::copy(folder, done.folder, fs::copy_options::recursive);
        write_file_atomically(record_of(folder_, stage.name), record.dump(2) + "\n");
      }
      done.result.folder = done.folder.string();
      done.result.reused = true;
      return done;
    }
    return std::nullopt;
  }

  Done train(const Pipeline::Stage& stage, const json& content, const json& inputs) {
    const fs::path record = record_of(folder_, stage.name);
    const json earlier = read_json(record);
    const bool is_the_same = earlier.is_object() && !earlier.value("finished", false) &&
                             earlier.value("inputs", json()) == inputs;
    const std::vector<fs::path> runs = runs_of(stage);
    RunOutcome outcome;
    if (is_the_same && !runs.empty()) {
      // One that was stopped goes on; so does one that was resumed without the pipeline since.
      outcome = resume_run(runtime_, runs.front(), options_);
    } else {
      // Before the record, which says whose the run in this folder is.
      for (const fs::path& before : runs)
        fs::remove_all(before);
      write_file_atomically(record, json{{"inputs", inputs}, {"finished", false}}.dump(2) + "\n");
      outcome = run_workflow(runtime_, workflow_of(content), options_);
    }
    StageResult result;
    result.stage = stage.name;
    result.kind = stage.content.contains("search") ? "search" : "run";
    result.folder = outcome.folder.string();
    result.evaluated_on = outcome.result.training.evaluated_on();
    result.metrics = outcome.result.metrics();
    if (outcome.result.has_model()) {
      result.best_loss = outcome.result.training.best_loss;
      result.final_loss = outcome.result.training.final_loss;
    }
    return in_all_processes({outcome.folder, std::move(result)});
  }

  /// As rank 0 has it, with its files.
  Done in_all_processes(Done done) const {
    if (options_.communicator == nullptr)
      return done;
    const json told = json::parse(internal::said_by_first(
        *options_.communicator,
        json{{"folder", done.folder.filename().string()}, {"summary", to_json(done.result)}}
            .dump()));
    done.folder = folder_ / kStages / told.at("folder").get<std::string>();
    internal::send_files(*options_.communicator, done.folder, kNotSent);
    done.result = stage_result_from(told.at("summary"), done.folder);
    done.result.folder = done.folder.string();
    return done;
  }

  /// Of this stage in this folder; more than one only after a kill.
  std::vector<fs::path> runs_of(const Pipeline::Stage& stage) const {
    std::vector<fs::path> runs;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / kStages)) {
      const json document = read_json(RunFolder::document_of(entry.path()));
      if (document.is_object() && document.value("name", "") == stage.name)
        runs.push_back(entry.path());
    }
    return runs;
  }

  Done use_model(const Pipeline::Stage& stage, const json& content) {
    const fs::path folder = folder_ / kStages / stage.name;
    make_folder(folder);
    const Predictor predictor =
        Predictor::load(runtime_, path_in_document(content.at("model")), "auto");
    const fs::path data = path_in_document(content.at("data"));
    StageResult result;
    result.stage = stage.name;
    result.folder = folder.string();
    if (stage.kind == Pipeline::Kind::kPredict) {
      result.kind = "predict";
      result.rows =
          predictor.label_file(data, folder / "predictions.csv", folder / "distribution.csv",
                               content.value("keep", std::vector<std::string>()));
    } else {
      result.kind = "evaluate";
      const EvaluationResult evaluation = predictor.evaluate_file(data);
      write_file_atomically(folder / "evaluation.json", to_json(evaluation).dump(2) + "\n");
      result.evaluated_on = "data";
      result.metrics = evaluation.metrics;
      result.loss = evaluation.loss;
    }
    return {folder, std::move(result)};
  }

  const Runtime& runtime_;
  const Pipeline& pipeline_;
  RunOptions options_;
  const fs::path folder_;
  fs::path from_;
  std::map<std::string, Done> done_;
};

/// With absolute paths, so that it means the same wherever it is read.
std::string stored(const Pipeline& pipeline) {
  json document = pipeline.document();
  return json{{"folder", pipeline.source().folder().string()}, {"document", document}}.dump(2) +
         "\n";
}

}  // namespace

void internal::expect_run_documents(const Runtime& runtime, const Document& document,
                                    std::span<const Pipeline::Stage> stages) {
  StageProblems problems(document);
  std::exception_ptr other;
  for (const Pipeline::Stage& stage : stages) {
    if (stage.kind != Pipeline::Kind::kRun)
      continue;
    try {
      naming_stage(stage.name, "", [&] {
        problems.add(stage.name, problems_of([&] {
                       const json content = with_paths(stage.content, [](const std::string& name) {
                         return fs::path("/") / name;
                       });
                       const ResolvedWorkflow workflow = resolve_workflow(
                           Document::from_json(content, document.folder()), runtime.schemas());
                       runtime.expect_usable(workflow.resolved);
                       check_document(runtime, workflow);
                     }));
      });
    } catch (const Error&) {
      if (!other)
        other = std::current_exception();
    }
  }
  if (std::vector<Problem> found = problems.take(); !found.empty())
    throw DocumentError(std::move(found));
  if (other)
    std::rethrow_exception(other);
}

void expect_stages(const Runtime& runtime, const Pipeline& pipeline) {
  internal::expect_run_documents(runtime, pipeline.source(), pipeline.stages());
}

PipelineOutcome run_pipeline(const Runtime& runtime, const Pipeline& pipeline,
                             const RunOptions& options, const fs::path& from) {
  if (!from.empty() && options.is_first_rank() && !is_pipeline_folder(from)) {
    throw UsageError(from.string() +
                     ": is not the folder of a pipeline, whose stages could be taken over");
  }
  expect_stages(runtime, pipeline);
  const RunFolder folder = RunFolder::create(options.output, pipeline.name());
  write_file_atomically(pipeline_document_of(folder.path()), stored(pipeline));
  return PipelineRun(runtime, pipeline, options, folder.path()).run(from);
}

bool is_pipeline_folder(const fs::path& folder) {
  return fs::exists(pipeline_document_of(folder));
}

bool is_pipeline_folder(const fs::path& folder, Communicator* communicator) {
  const bool is_here =
      (communicator == nullptr || communicator->rank() == 0) && is_pipeline_folder(folder);
  return internal::any_says(communicator, is_here);
}

fs::path folder_to_resume(const fs::path& run) {
  const fs::path stages = run.lexically_normal().parent_path();
  return stages.filename() == kStages && is_pipeline_folder(stages.parent_path())
             ? stages.parent_path()
             : run;
}

PipelineOutcome resume_pipeline(const Runtime& runtime, const fs::path& kept_by_first,
                                const RunOptions& options) {
  std::optional<RunFolder> lock;
  if (options.is_first_rank())
    lock.emplace(RunFolder::lock(kept_by_first));
  const fs::path folder = copied(options, kept_by_first, "pipeline");
  const fs::path ended = RunFolder::result_of(folder);
  if (const json result = read_json(ended); result.is_object())
    return {folder, pipeline_result_from(result, ended.string())};
  const json kept = read_json(pipeline_document_of(folder));
  if (!kept.is_object() || !kept.contains("document"))
    throw StorageError(pipeline_document_of(folder).string() + ": is damaged");
  const Pipeline pipeline = Pipeline::read(
      Document::from_json(kept.at("document"), fs::path(kept.value("folder", std::string()))));
  return PipelineRun(runtime, pipeline, options, folder).run({});
}

}  // namespace treadle
