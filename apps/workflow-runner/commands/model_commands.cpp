#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/model/quantized_weights.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/picture.h>
#include <treadle/host/run/compared_predictions.h>
#include <treadle/host/run/devices.h>
#include <treadle/host/run/exported_table.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/plan/plan.h>

#include "command_line/answer.h"
#include "command_line/option_values.h"
#include "commands/device_listing.h"
#include "commands/graft.h"
#include "commands/latency_measurement.h"
#include "commands/tensor_commands.h"
#include "compare/row_comparison.h"
#include "compare/run_comparison.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

/// What --dtype names; nullopt without it.
std::optional<WeightDtype> weight_dtype(const CommandLine& line) {
  if (!line.has("dtype"))
    return std::nullopt;
  const std::string word = line.text("dtype");
  std::vector<std::string> words;
  for (const NamedWeightDtype& one : weight_dtypes()) {
    if (one.name == word)
      return one.dtype;
    words.emplace_back(one.name);
  }
  throw UsageError("--dtype: expected " + name_list(words) + ", got " + quote_text(word) +
                   did_you_mean(word, words));
}

/// The model's graph; expects a document whose model is one.
std::shared_ptr<graph::Graph> graph_of(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const auto model = std::dynamic_pointer_cast<graph::Graph>(untrained_model(runtime, workflow));
  if (model == nullptr) {
    throw UsageError("the model " + workflow.resolved.at("model").at("use").dump() +
                     " is not a graph; {\"use\": \"flow\"} is");
  }
  return model;
}

/// The plan of a model for a batch as it is trained on, or for as many rows to predict.
std::string plan_text(graph::Graph& model, const ResolvedWorkflow& workflow, bool for_inference) {
  constexpr std::int64_t kCommonSize = 32;  // where it is still open
  const nlohmann::json& given = workflow.resolved.at("training").at("batch_size");
  const auto rows = given.is_number() ? given.get<std::int64_t>() : kCommonSize;
  model.train(!for_inference);
  if (for_inference)
    model.prepare_for_inference();
  const at::AutoGradMode gradients(!for_inference);
  return model.compile(rows).text();
}

void print_picture(const CommandLine& line, const std::string& picture) {
  if (line.has("svg"))
    write_file_atomically(line.output_file("svg"), graph::svg(picture));
  if (line.has("json")) {
    print(Json{{"dot", picture}});
  } else if (!line.has("svg")) {
    print(picture + (picture.ends_with('\n') ? "" : "\n"));
  }
}

}  // namespace

void print_devices(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const DeviceListing listing = list_devices(runtime);
  if (line.has("json")) {
    print(device_listing_json(listing));
  } else {
    print(device_listing(listing, Terminal(STDOUT_FILENO)));
  }
}

/// The models of runs, on rows that all of them held out.
void compare_row_by_row(const CommandLine& line) {
  if (line.arguments.size() < 2)
    throw UsageError("rows are compared between two runs or more; name another RUN");
  if (line.has("csv"))
    throw UsageError("--csv prints the table of runs; for the rows, name a file with --rows FILE");
  if (line.has("at")) {
    throw UsageError(
        "--at compares trainings on the way, and rows are predicted by the models that they ended "
        "with; leave one of them out");
  }
  const auto min_coverage = number_of<double>(line, "min-coverage", "a number from 0 to 1");
  if (!(min_coverage >= 0 && min_coverage <= 1))
    throw UsageError("--min-coverage is a share of the rows, from 0 to 1");
  const std::string output = line.has("rows") ? line.output_file("rows") : "";
  const RunComparison comparison = compare_runs(line);
  const compare::EvaluatedOn on = evaluated_on(line);
  ComparedRows wanted;
  wanted.from = on == compare::EvaluatedOn::kTest ? ComparedRows::From::kTest
                                                  : ComparedRows::From::kValidation;
  wanted.file = line.text("data");
  std::vector<std::filesystem::path> folders;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    folders.push_back(comparison.runs[i].folder);
    names.push_back(comparison.measured[i].name);
  }
  const Runtime runtime = make_runtime(line);
  const RowComparison rows(predict_for_comparison(runtime, folders, wanted, device_for_use(line)),
                           std::move(names), min_coverage);
  if (!output.empty())
    write_file_atomically(output, rows.csv());
  if (is_standard_output(output))
    return;  // nothing but the rows
  if (line.has("json")) {
    Json all = comparison.json();
    all["rows"] = rows.json();
    print(all);
    return;
  }
  const Terminal terminal(STDOUT_FILENO);
  print(comparison.text(terminal) + "\n" + rows.text(wanted.file.string(), terminal) +
        (output.empty() ? "" : "\nall rows are in " + output + "\n"));
}

namespace {

void export_table_of_run(const CommandLine& line, const std::string& output) {
  if (line.has("dtype"))
    throw UsageError(
        "--dtype is that of a model's parameters, and --table writes none; leave it out");
  const Runtime runtime = make_runtime(line);
  const std::int64_t rows = export_table(runtime, line.arguments[0], line.text("table"), output);
  if (is_standard_output(output))
    return;  // nothing but the rows
  if (line.has("json")) {
    print(Json{{"output", output}, {"rows", rows}});
  } else if (!line.has("quiet")) {
    print(std::to_string(rows) + (rows == 1 ? " row" : " rows") + " in " + output + "\n");
  }
}

}  // namespace

void export_run(const CommandLine& line) {
  const std::string output = line.output_file("output");
  if (line.has("table")) {
    export_table_of_run(line, output);
    return;
  }
  const std::string extension = std::filesystem::path(output).extension().string();
  if (!is_standard_output(output) && !extension.empty() && extension != ".safetensors") {
    throw UsageError(
        "a model is exported as safetensors, and " + quote_text(output) +
        " is called otherwise; name it " +
        quote_text(std::filesystem::path(output).replace_extension(".safetensors").string()));
  }
  export_model(line.arguments[0], output, weight_dtype(line));
  if (is_standard_output(output))
    return;  // nothing but the bytes
  if (line.has("json")) {
    print(Json{{"output", output}});
  } else if (!line.has("quiet")) {
    print("the model is in " + output + "; to use it: workflow-runner predict " + output +
          " DATA -o OUT\n");
  }
}

void graft(const CommandLine& line) {
  const std::string output = line.output_file("output");
  GraftOptions options;
  options.node = line.text("node");
  options.combine = line.text("combine");
  options.is_frozen = line.has("frozen");
  options.folder = is_standard_output(output) ? std::filesystem::current_path()
                                              : std::filesystem::absolute(output).parent_path();
  const Runtime runtime = make_runtime(line);
  std::vector<std::string> notes;
  const auto document =
      Document::from_json(graft_document(runtime, line.arguments, options,
                                         [&](const std::string& text) { notes.push_back(text); }),
                          options.folder);
  for (const std::string& assignment : line.overrides())
    apply_override(*document, assignment);
  // With its data and its weights: a mismatch is an error before anything is written.
  untrained_model(runtime, resolve_workflow(document, runtime.schemas()));
  write_file_atomically(output, write_workflow(document->value()));
  if (is_standard_output(output))
    return;  // nothing but the document
  if (line.has("json")) {
    print(Json{{"output", output}, {"notes", notes}});
  } else if (!line.has("quiet")) {
    for (const std::string& text : notes)
      print("note: " + text + "\n");
    print("the document is in " + output + "; to run it: workflow-runner run " + output + "\n");
  }
}

void measure_latency(const CommandLine& line) {
  const std::string output = line.output_file("output");
  const Runtime runtime = make_runtime(line);
  std::vector<LatencyModel::Pass> passes;
  for (const std::string& file : line.arguments) {
    passes.push_back(measure_pass(*graph_of(runtime, runtime.read(file, line.overrides())), file));
  }
  if (passes.empty())
    passes = measure_known_networks(runtime);
  const LatencyModel::Fit fit = LatencyModel::fit(passes);
  const Json content = latency_file(fit, passes);
  write_file_atomically(output, content.dump(2) + "\n");
  if (is_standard_output(output))
    return;  // nothing but the file
  if (line.has("json")) {
    print(content);
  } else if (!line.has("quiet")) {
    print(latency_text(fit, passes, Terminal(STDOUT_FILENO)) + "the model of this machine is in " +
          output + "; a document names it: \"search\": {\"latency\": \"" + output + "\"}\n");
  }
}

void draw_graph(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  if (const auto document = pipeline_document(line)) {
    if (line.has("model"))
      throw UsageError("a pipeline has no model of its own; draw the document of a stage");
    return print_picture(line, Pipeline::read(document).picture());
  }
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.texts("set"));
  for (const char* list : {"table", "plan"}) {
    if (line.has(list) && !line.has("model"))
      throw UsageError("--" + std::string(list) + " is about a model: add --model");
  }
  if (line.has("inference") && !line.has("plan"))
    throw UsageError("--inference is about a plan: add --plan");
  const auto model = line.has("model") ? graph_of(runtime, workflow) : nullptr;
  if (line.has("table") || line.has("plan")) {
    if (line.has("table") && line.has("json")) {
      print(graph::summary_json(*model));
      return;
    }
    const std::string text = line.has("table") ? graph::summary(*model)
                                               : plan_text(*model, workflow, line.has("inference"));
    line.has("json") ? print(Json{{"plan", text}}) : print(text);
    return;
  }
  const std::string picture = model ? graph::dot(*model, {workflow.name}) : stage_picture(workflow);
  print_picture(line, picture);
}

}  // namespace treadle::cli
