#include <memory>
#include <string>

#include <treadle/base/error.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/workflow_run.h>

#include "commands/tensor_commands.h"
#include "commands/watched_training.h"

namespace treadle::cli {
namespace {

void train_further(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  SharedTraining shared;
  train_watched(line, shared, [&](RunOptions options) {
    options.output = line.text("output");
    options.allow_differences = line.has("allow-differences");
    shared.connect(runtime, options);
    return continue_run(runtime, line.text("from"), line.overrides(), options);
  });
}

}  // namespace

Runtime make_runtime(const CommandLine& line) {
  return Runtime(line.plugin_settings());
}

std::shared_ptr<const Document> pipeline_document(const CommandLine& line) {
  if (line.arguments.empty())
    return nullptr;
  const std::shared_ptr<Document> document = Document::read(line.arguments[0]);
  if (!Pipeline::is_pipeline(document->value()))
    return nullptr;
  for (const std::string& assignment : line.overrides())
    apply_override(*document, assignment);
  return document;
}

void run_document(const CommandLine& line) {
  if (const auto document = pipeline_document(line)) {
    const Runtime runtime = make_runtime(line);
    const Pipeline pipeline = Pipeline::read(document, runtime);
    SharedTraining shared;
    return train_watched(line, shared, [&](RunOptions options) {
      options.output = line.text("output");
      shared.connect(runtime, options);
      return run_pipeline(runtime, pipeline, options, line.text("reuse"));
    });
  }
  if (line.has("reuse"))
    throw UsageError("--reuse is about the stages of a pipeline, and this document has none");
  if (line.has("from"))
    return train_further(line);
  if (line.has("allow-differences"))
    throw UsageError("--allow-differences is about a run that goes on: add --from RUN");
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.overrides());
  SharedTraining shared;
  train_watched(line, shared, [&](RunOptions options) {
    options.output = line.text("output");
    shared.connect(runtime, workflow, options);
    return run_workflow(runtime, workflow, options);
  });
}

void resume(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  SharedTraining shared;
  train_watched(line, shared, [&](RunOptions options) -> Outcome {
    options.allow_differences = line.has("allow-differences");
    options.device = line.text("device");
    shared.connect(runtime, options);
    if (is_pipeline_folder(line.arguments[0], options.communicator))
      return resume_pipeline(runtime, line.arguments[0], options);
    return resume_run(runtime, line.arguments[0], options);
  });
}

}  // namespace treadle::cli
