// treadle-run: executes the commands that need tensors. Started by workflow-runner, with the same
// arguments.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/quantized_weights.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/picture.h>
#include <treadle/host/automl/auto_document.h>
#include <treadle/host/run/compared_predictions.h>
#include <treadle/host/run/data_profile.h>
#include <treadle/host/run/devices.h>
#include <treadle/host/run/generator.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/runtime.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/plan/plan.h>

#include "device_listing.h"
#include "fatal_signals.h"
#include "graft.h"
#include "interruption.h"
#include "latency_measurement.h"
#include "program.h"
#include "progress_view.h"
#include "result_text.h"
#include "row_comparison.h"
#include "run_comparison.h"
#include "table_text.h"
#include "terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

void print(const std::string& text) {
  Terminal(STDOUT_FILENO).answer(text);
}

void print(const Json& value) {
  print(value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Runtime make_runtime(const CommandLine& line) {
  return Runtime(line.plugin_settings());
}

/// Hears where the run is kept, and when there is something to save.
class FirstStep final : public RunObserver {
 public:
  explicit FirstStep(Interruption& interruption) : interruption_(interruption) {}

 private:
  void do_run_started(const std::string&, const std::string& folder) override {
    set_crash_remedy("to continue the run: workflow-runner resume " + shown_path(folder) + "\n");
  }
  void do_step_completed(const FitId&, const StepProgress&) override {
    interruption_.expect_saving();
  }

  Interruption& interruption_;
};

Interrupted stopped_run(const std::string& what, const ProgressView& view) {
  const std::string folder = view.folder().empty() ? "" : shown_path(view.folder());
  return Interrupted(what + (folder.empty()
                                 ? ""
                                 : "; the run is saved in " + folder +
                                       "\nto continue it: workflow-runner resume " + folder));
}

/// The run is there, even where nobody can be told of it.
void print_outcome(const CommandLine& line, const RunOutcome& outcome, const Terminal& terminal) {
  try {
    if (line.has("json")) {
      print(Json{{"folder", std::filesystem::absolute(outcome.folder).string()},
                 {"result", outcome.result}});
    } else if (!line.has("quiet")) {
      print(outcome.result.contains("pipeline")
                ? "\n" + pipeline_table(outcome.result, terminal)
                : "\n" + result_table(outcome.result, terminal) + "\n" +
                      time_table(outcome.result, terminal) + "Report  " +
                      shown_path(outcome.folder / "report.html") + "\n");
    }
  } catch (const StorageError& error) {
    throw StorageError(std::string(error.what()) + "\nthe run is finished and saved in " +
                       shown_path(outcome.folder));
  }
}

/// The model's graph for the report. A picture is a help: where it cannot be drawn there is none.
ModelDrawing draw_for_report(Model& model) {
  constexpr std::size_t kMostPartsDrawn = 200;  // more are slow to lay out, and hard to read
  ModelDrawing drawing;
  auto* const graph = dynamic_cast<graph::Graph*>(&model);
  if (graph == nullptr)
    return drawing;
  try {
    drawing.parts = graph::summary_cells(*graph);
    if (drawing.parts.size() <= kMostPartsDrawn)
      drawing.svg = graph::svg(graph::dot(*graph));
  } catch (const std::exception&) {
    // Without Graphviz the table is all there is.
  }
  return drawing;
}

/// A training with everything a person at a terminal expects around it.
template <typename Train>
void train_watched(const CommandLine& line, Train&& train) {
  // A run goes on when nobody reads its lines any more: `workflow-runner run … | head`.
  signal(SIGPIPE, SIG_IGN);
  const bool as_json = line.has("json");
  // With --json the standard output is for the program that reads it; a person may still watch.
  const Terminal terminal(as_json ? STDERR_FILENO : STDOUT_FILENO);
  ProgressView view(terminal, line.has("quiet") || (as_json && !terminal.is_terminal()));
  const auto tell = [&](const std::string& text) {
    if (line.has("quiet") || as_json) {
      Terminal(STDERR_FILENO).write(text + "\n");
    } else {
      view.announce(text);
    }
  };
  Interruption interruption(
      [&](bool is_saving) {
        if (is_saving)
          tell("stopping after this step … (Ctrl-C again to stop at once)");
      },
      [&] {
        const Interrupted stopped = stopped_run("stopped before the first step", view);
        report_failure(std::make_exception_ptr(stopped), as_json);
      });
  FirstStep first_step(interruption);
  RunOptions options;
  options.stop = interruption.token();
  options.observers = {&view, &first_step};
  options.trace = line.text("trace");
  options.draw_model = draw_for_report;
  RunOutcome outcome;
  try {
    outcome = train(std::move(options));
  } catch (const Interrupted& stopped) {
    view.finish();
    throw stopped_run(stopped.what(), view);
  }
  view.finish();
  print_outcome(line, outcome, terminal);
}

void train_further(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  train_watched(line, [&](RunOptions options) {
    options.output = line.text("output");
    options.allow_differences = line.has("allow-differences");
    return continue_run(runtime, line.text("from"), line.overrides(), options);
  });
}

/// The document of a pipeline, with what --set changes; null: it has no stages.
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
    return train_watched(line, [&](RunOptions options) {
      options.output = line.text("output");
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
  train_watched(line, [&](RunOptions options) {
    options.output = line.text("output");
    return run_workflow(runtime, workflow, options);
  });
}

void resume(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  train_watched(line, [&](RunOptions options) {
    options.allow_differences = line.has("allow-differences");
    options.device = line.text("device");
    if (is_pipeline_folder(line.arguments[0]))
      return resume_pipeline(runtime, line.arguments[0], options);
    return resume_run(runtime, line.arguments[0], options);
  });
}

template <typename Number>
Number number_of(const CommandLine& line, const char* option, const char* wanted) {
  const std::string text = line.text(option);
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    throw UsageError("--" + std::string(option) + ": expected " + wanted + ", got " +
                     quote_text(text));
  }
  return number;
}

void go_on_searching(const CommandLine& line) {
  if (line.has("cancel")) {
    const auto trial = number_of<std::int64_t>(line, "cancel", "the number of a trial");
    cancel_trial(line.text("resume"), trial);
    if (!line.has("quiet") && !line.has("json")) {
      print("Trial " + std::to_string(trial) +
            " is cancelled: if it is being trained, it ends with its epoch. If it has ended, it "
            "stays as it is.\n");
    }
    return;
  }
  if (line.has("trials"))
    throw UsageError("--trials is for a new search; with --resume: --add-trials COUNT");
  const Runtime runtime = make_runtime(line);
  if (line.has("add-trials") || line.has("time")) {
    std::int64_t added = 0;
    if (line.has("add-trials")) {
      added = number_of<std::int64_t>(line, "add-trials", "how many trials more");
      if (added < 1)
        throw UsageError("--add-trials: expected 1 or more, got " + std::to_string(added));
    }
    extend_search(runtime, line.text("resume"), added, line.text("time"));
  }
  train_watched(line, [&](RunOptions options) {
    options.allow_differences = line.has("allow-differences");
    options.device = line.text("device");
    return resume_run(runtime, line.text("resume"), options);
  });
}

void join(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  signal(SIGPIPE, SIG_IGN);
  const bool is_silent = line.has("quiet") || line.has("json");
  ProgressView view(Terminal(STDOUT_FILENO), is_silent);
  Interruption interruption([&](bool) { view.announce("stopping after this step …"); }, [] {});
  FirstStep first_step(interruption);
  RunOptions options;
  options.stop = interruption.token();
  options.observers = {&view, &first_step};
  options.allow_differences = line.has("allow-differences");
  const JoinedSearch joined = join_search(runtime, line.text("join"), line.text("study"), options);
  view.finish();
  if (line.has("json")) {
    print(Json{{"study", joined.study}, {"jobs", joined.jobs}});
  } else if (!is_silent) {
    print("The search " + joined.study + " has ended; this process has done " +
          std::to_string(joined.jobs) + (joined.jobs == 1 ? " job" : " jobs") + " of it.\n");
  }
}

/// One point a line, so that people can pick some.
std::string points_text(const Json& points) {
  std::string text;
  for (const Json& point : points)
    text += (text.empty() ? "[\n  " : ",\n  ") + point.dump();
  return text + "\n]\n";
}

void write_points(const CommandLine& line, const Json& points) {
  const std::string output = line.output_file("points-only");
  write_file_atomically(output, points_text(points));
  if (is_standard_output(output))
    return;  // nothing but the points
  if (line.has("json")) {
    print(Json{{"output", output}, {"points", points.size()}});
  } else if (!line.has("quiet")) {
    print(std::to_string(points.size()) +
          (points.size() == 1 ? " point is in " : " points are in ") + output +
          "; a search begins with them with \"initial\": \"" + output + "\"\n");
  }
}

void tune(const CommandLine& line) {
  if (line.has("points-only") && (line.has("join") || line.has("resume")))
    throw UsageError("--points-only is about a new search; leave --join and --resume out");
  if (line.has("join"))
    return join(line);
  if (line.has("resume"))
    return go_on_searching(line);
  for (const char* option : {"add-trials", "cancel"}) {
    if (line.has(option))
      throw UsageError("--" + std::string(option) +
                       " is about a search that there is: add --resume RUN");
  }
  std::vector<std::string> overrides = line.overrides();
  if (line.has("trials"))
    overrides.push_back("search.trials=" + line.text("trials"));
  if (line.has("time"))
    overrides.push_back("search.budget.time=" + line.text("time"));
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], overrides);
  if (!workflow.resolved.contains("search")) {
    throw UsageError(line.arguments[0] +
                     ": has no \"search\", which says what to try; without one: workflow-runner "
                     "run " +
                     line.arguments[0]);
  }
  if (line.has("points-only"))
    return write_points(line, search_points(runtime, workflow));
  train_watched(line, [&](RunOptions options) {
    options.output = line.text("output");
    options.allow_differences = line.has("allow-differences");
    return run_workflow(runtime, workflow, options);
  });
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes)
    text += "note: " + note + "\n";
  return text;
}

void check_with_data(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.overrides());
  const std::vector<std::string> notes = notes_on_search(runtime, workflow);
  const DryRun dry = dry_run(runtime, workflow);
  Json facts{{"data", dry.data}, {"model", dry.model}, {"validation", dry.validation}};
  if (!dry.search.is_null()) {
    facts["search"] = dry.search;
    facts["search"].erase("bytes_of_a_training");
    facts["search"]["memory_of_a_training"] =
        bytes_text(dry.search.at("bytes_of_a_training").get<double>());
  }
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", notes},
               {"resolved", workflow.resolved},
               {"data", dry.data},
               {"model", dry.model},
               {"validation", dry.validation},
               {"search", dry.search},
               {"estimated_bytes", dry.estimated_bytes},
               {"device", dry.device},
               {"estimated_device_bytes", dry.estimated_device_bytes}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found; one batch went through everything\n" +
          notes_text(notes) + facts_text(facts) + "memory: about " +
          bytes_text(static_cast<double>(dry.estimated_bytes)) +
          " at the peak, on top of the program itself\n" +
          (dry.estimated_device_bytes == 0
               ? std::string()
               : "memory of " + dry.device + ": about " +
                     bytes_text(static_cast<double>(dry.estimated_device_bytes)) +
                     " at the peak\n"));
  }
}

/// Without data: what only libtorch, the device and plugins' code know.
void check_without_data(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.overrides());
  std::vector<std::string> notes = notes_on_precision(runtime, workflow);
  for (std::string& note : notes_on_search(runtime, workflow))
    notes.push_back(std::move(note));
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", notes},
               {"resolved", workflow.resolved}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found\n" + notes_text(notes));
  }
}

void check_pipeline(const CommandLine& line, const std::shared_ptr<const Document>& document) {
  if (line.has("dry-run")) {
    throw UsageError("--dry-run is about one training; check the document of a stage for it");
  }
  const Runtime runtime = make_runtime(line);
  const Pipeline pipeline = Pipeline::read(document, runtime);
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", Json::array()},
               {"resolved", pipeline.document()}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found\n");
  }
}

void check(const CommandLine& line) {
  if (const auto document = pipeline_document(line))
    return check_pipeline(line, document);
  return line.has("dry-run") ? check_with_data(line) : check_without_data(line);
}

std::string device_for_use(const CommandLine& line) {
  return line.has("device") ? line.text("device") : "auto";
}

void evaluate(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const Json validation = Predictor::load(runtime, line.arguments[0], device_for_use(line))
                              .evaluate_file(line.arguments[1]);
  if (line.has("json")) {
    print(validation);
  } else if (!line.has("quiet")) {
    print(evaluation_table(validation, Terminal(STDOUT_FILENO)));
  }
}

/// The names in a line of CSV: `id,"size, in m"` are two, the second with a comma in it.
/// `example` is that of an option whose names are quoted.
void add_column_names(std::string_view line, const std::string& example,
                      std::vector<std::string>& names) {
  for (std::size_t at = 0; at <= line.size(); ++at) {
    std::string name;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size() && (line[at] != '"' || line.substr(at + 1).starts_with('"'));
           ++at) {
        name += line[at];
        at += line[at] == '"' ? 1 : 0;
      }
      if (at == line.size() || (at + 1 < line.size() && line[at + 1] != ',')) {
        throw UsageError(example.substr(0, example.find(' ') + 1) + quote_text(line) +
                         ": expected a closing quote at the end of a name; a name with a comma is "
                         "quoted as in CSV: " +
                         example);
      }
      ++at;
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      name = line.substr(at, end - at);
      at = end;
    }
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
}

/// What an option that may be repeated lists.
std::vector<std::string> column_names(const CommandLine& line, const std::string& option,
                                      const std::string& example = "id,\"size, in m\"") {
  std::vector<std::string> names;
  for (const std::string& list : line.texts(option))
    add_column_names(list, "--" + option + " '" + example + "'", names);
  return names;
}

/// --types: "when=date,zip=category", and "a=b=number" of a column called a=b.
std::map<std::string, std::string> column_types(const CommandLine& line) {
  const std::vector<std::string> known{"number", "category", "date"};
  const std::string example = "when=date,\"size, in m=number\"";
  std::map<std::string, std::string> types;
  for (const std::string& text : column_names(line, "types", example)) {
    const std::size_t equals = text.rfind('=');
    const std::string type = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (std::find(known.begin(), known.end(), type) == known.end()) {
      throw UsageError(
          "--types: expected COLUMN=TYPE, where TYPE is " + name_list(known) + ", got " +
          quote_text(text) +
          (equals == std::string::npos
               ? "; a column with a comma is quoted as in CSV: --types '" + example + "'"
               : did_you_mean(type, known)));
    }
    types[text.substr(0, equals)] = type;
  }
  return types;
}

/// How many trials --set makes of a search: which first points it begins with depends on it.
std::optional<std::int64_t> overridden_trials(const std::vector<std::string>& assignments) {
  constexpr std::string_view kKey = "search.trials=";
  std::optional<std::int64_t> trials;
  for (const std::string& assignment : assignments) {
    std::int64_t number = 0;
    const char* const end = assignment.data() + assignment.size();
    if (assignment.starts_with(kKey) &&
        std::from_chars(assignment.data() + kKey.size(), end, number).ptr == end) {
      trials = number;  // anything else is an error of the document
    }
  }
  return trials;
}

std::string checked_task(const CommandLine& line) {
  const std::vector<std::string> known{"auto", "classification", "regression"};
  std::string task = line.text("task");
  if (std::find(known.begin(), known.end(), task) == known.end()) {
    throw UsageError("--task: expected " + name_list(known) + ", got " + quote_text(task) +
                     did_you_mean(task, known));
  }
  return task;
}

/// A run's name: what a file's name has of letters, digits, dots and dashes.
std::string run_name_of(const std::filesystem::path& file) {
  std::string name = file.stem().string().substr(0, 60);
  for (char& c : name) {
    const bool is_allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    c = is_allowed ? c : '-';
  }
  return "auto-" + name;
}

struct AutoDocument {
  automl::TableReading table;
  std::vector<std::string> slow_families;  // that the time is not enough for
  std::shared_ptr<Document> document;
};

/// What is to be run for a table. The overrides of `data` count before the file is read; all others
/// change what was written. `folder`, where the document will be, is absolute, or empty: nowhere.
AutoDocument auto_document(const Runtime& runtime, const CommandLine& line,
                           const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const std::string& file = line.arguments[0];
  // As it was typed, unless the document is written into another folder.
  const bool is_elsewhere =
      !folder.empty() && folder.lexically_normal() != fs::current_path().lexically_normal();
  const std::string path = is_elsewhere && !fs::path(file).is_absolute()
                               ? fs::absolute(file).lexically_proximate(folder).string()
                               : file;
  const auto begun = Document::from_json(
      {{"treadle", 1}, {"data", {{"use", "csv"}, {"path", path}}}, {"model", "linear"}}, folder);
  std::vector<std::string> others;
  for (const std::string& assignment : line.overrides()) {
    if (assignment.starts_with("data.") || assignment.starts_with("data=")) {
      apply_override(*begun, assignment);
    } else {
      others.push_back(assignment);
    }
  }
  AutoDocument made;
  const ResolvedWorkflow begun_workflow = resolve_workflow(begun, runtime.schemas());
  made.table = automl::read_table(
      profile_data(runtime, begun_workflow),
      {line.text("target"), checked_task(line), column_names(line, "drop"), column_types(line)},
      file);
  automl::DocumentOptions options;
  options.name = run_name_of(file);
  options.seed = number_of<std::uint64_t>(line, "seed", "a whole number from 0 on");
  if (line.has("trials"))
    options.trials = number_of<std::int64_t>(line, "trials", "a whole number");
  options.time = line.text("time");
  if (const auto trials = overridden_trials(others))
    options.trials = trials;
  options.families = column_names(line, "families");
  options.workers = engine::available_cores();
  made.slow_families = automl::slow_families(made.table, automl::Portfolio::built_in(), options);
  made.document = Document::from_json(automl::auto_document(made.table, begun->value().at("data"),
                                                            automl::Portfolio::built_in(), options),
                                      folder);
  for (const std::string& assignment : others)
    apply_override(*made.document, assignment);
  return made;
}

/// What the document is made of, for people.
std::string auto_text(const AutoDocument& made, const CommandLine& line) {
  std::string text = table_text(made.table, Terminal(STDOUT_FILENO));
  if (!made.slow_families.empty()) {
    text += "Left out  " + name_list(made.slow_families) + ", of which a trial takes too much of " +
            line.text("time") + "; to try them, give more time or name them with --families\n";
  }
  return text;
}

void run_auto(const CommandLine& line) {
  const std::string output = line.has("document-only") ? line.output_file("document-only") : "";
  const std::filesystem::path folder = output.empty() || is_standard_output(output)
                                           ? std::filesystem::path()
                                           : std::filesystem::absolute(output).parent_path();
  const Runtime runtime = make_runtime(line);
  const AutoDocument made = auto_document(runtime, line, folder);
  const ResolvedWorkflow workflow = resolve_workflow(made.document, runtime.schemas());
  expect_search(runtime, workflow);
  if (!output.empty()) {
    write_file_atomically(output, write_workflow(made.document->value()));
    if (is_standard_output(output))
      return;  // nothing but the document
    if (line.has("json")) {
      print(Json{{"output", output},
                 {"table", table_json(made.table)},
                 {"slow_families", made.slow_families}});
    } else if (!line.has("quiet")) {
      print(auto_text(made, line) + "the document is in " + output +
            "; to run it: workflow-runner run " + output + "\n");
    }
    return;
  }
  if (!line.has("json") && !line.has("quiet"))
    print(auto_text(made, line) + "\n");
  RunOutcome outcome;
  train_watched(line, [&](RunOptions run_options) {
    run_options.output = line.text("output");
    return outcome = run_workflow(runtime, workflow, run_options);
  });
  if (!line.has("json") && !line.has("quiet")) {
    const std::filesystem::path& run = outcome.folder;
    print(model_text(outcome.result, workflow.resolved.at("search")) +
          "Again   workflow-runner run " + shown_path(run / "workflow.json") +
          "\nPredict workflow-runner predict " + shown_path(run) + " DATA -o OUT\n");
  }
}

SampleOptions samples_of(const CommandLine& line) {
  SampleOptions samples;
  if (line.has("seed") && !line.has("samples"))
    throw UsageError("--seed is that of the samples, and there are none without --samples");
  if (!line.has("samples"))
    return samples;
  samples.count = number_of<std::int64_t>(line, "samples", "a whole number");
  if (samples.count < 1)
    throw UsageError("--samples is the number of samples to draw for each row, at least 1");
  if (line.has("seed"))
    samples.seed = number_of<std::uint64_t>(line, "seed", "a whole number from 0 on");
  return samples;
}

void predict(const CommandLine& line) {
  const std::string output = line.output_file("output");
  const std::vector<std::string> keep = column_names(line, "keep");
  const bool continues = line.has("horizon");
  const std::int64_t steps =
      continues ? number_of<std::int64_t>(line, "horizon", "a whole number") : 0;
  if (continues && steps < 1)
    throw UsageError("--horizon is the number of steps to predict, at least 1");
  if (continues && !keep.empty())
    throw UsageError("--keep copies columns of rows that are there, and --horizon predicts others");
  const SampleOptions samples = samples_of(line);
  const Runtime runtime = make_runtime(line);
  const Predictor predictor = Predictor::load(runtime, line.arguments[0], device_for_use(line));
  const std::int64_t rows =
      continues ? predictor.continue_series(line.arguments[1], output, steps, samples)
                : predictor.predict_file(line.arguments[1], output, keep, samples);
  if (is_standard_output(output))
    return;  // nothing but the rows
  if (line.has("json")) {
    print(Json{{"rows", rows}, {"output", output}});
  } else if (!line.has("quiet")) {
    print(std::to_string(rows) + (rows == 1 ? " row" : " rows") + " predicted, in " + output +
          "\n");
  }
}

/// For a terminal: what a model writes is nobody's order to it. New lines and tabs stay.
std::string harmless(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    shown += plain_text(text.substr(0, end));
    shown += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

std::string_view name_of(GeneratedText::End end) {
  constexpr std::array<std::string_view, 4> kNames{"length", "end_of_text", "stop_string",
                                                   "stopped"};
  return kNames[static_cast<std::size_t>(end)];
}

void generate(const CommandLine& line) {
  GenerationOptions options;
  options.max_new_tokens = number_of<std::int64_t>(line, "max-new-tokens", "a whole number");
  options.temperature = number_of<double>(line, "temperature", "a number");
  options.top_k = number_of<std::int64_t>(line, "top-k", "a whole number");
  options.top_p = number_of<double>(line, "top-p", "a number");
  options.seed = number_of<std::uint64_t>(line, "seed", "a whole number from 0 on");
  options.stop_strings = line.texts("stop");
  const std::string prompt = line.text("prompt");
  const Runtime runtime = make_runtime(line);
  const Generator generator = Generator::load(runtime, line.arguments[0], device_for_use(line));
  const bool as_json = line.has("json");
  const Terminal terminal(STDOUT_FILENO);
  const auto write = [&](std::string_view text) {
    if (!as_json)
      terminal.answer(terminal.is_terminal() ? harmless(text) : std::string(text));
  };
  Interruption interruption([](bool) {}, [] {});
  options.stop = interruption.token();
  write(prompt);
  const GeneratedText generated = generator.generate(prompt, options, write);
  if (as_json) {
    print(Json{{"prompt", prompt},
               {"text", generated.text},
               {"tokens", generated.tokens},
               {"ended_by", name_of(generated.end)},
               {"used_cache", generated.used_cache}});
  } else if (terminal.is_terminal()) {
    terminal.answer("\n");
  }
  if (generated.end == GeneratedText::End::kStopped)
    throw Interrupted("stopped after " + std::to_string(generated.tokens) + " tokens");
}

void print_devices(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const DeviceListing listing = list_devices(runtime);
  if (line.has("json")) {
    print(device_listing_json(listing));
  } else {
    print(device_listing(listing, Terminal(STDOUT_FILENO)));
  }
}

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
  const JudgedOn on = judged_on(line);
  ComparedRows wanted;
  wanted.from = on == JudgedOn::kTest ? ComparedRows::From::kTest : ComparedRows::From::kValidation;
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

void export_run(const CommandLine& line) {
  const std::string output = line.output_file("output");
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
  // With its data and its weights: what does not fit is an error before anything is written.
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

/// The model's graph; expects a document whose model is one.
std::shared_ptr<graph::Graph> graph_of(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const auto model = std::dynamic_pointer_cast<graph::Graph>(untrained_model(runtime, workflow));
  if (model == nullptr) {
    throw UsageError("the model " + workflow.resolved.at("model").at("use").dump() +
                     " is not a graph; {\"use\": \"flow\"} is");
  }
  return model;
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

/// What a model is compiled to for a batch as it is trained on, or for as many rows to predict.
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

}  // namespace
}  // namespace treadle::cli

int main(int argc, char** argv) {
  using namespace treadle::cli;
  report_fatal_signals();
  const Program program{true,
                        {{"run", run_document},
                         {"auto", run_auto},
                         {"tune", tune},
                         {"resume", resume},
                         {"check", check},
                         {"compare", compare_row_by_row},
                         {"evaluate", evaluate},
                         {"predict", predict},
                         {"generate", generate},
                         {"graft", graft},
                         {"latency", measure_latency},
                         {"runs export", export_run},
                         {"devices", print_devices},
                         {"graph", draw_graph}},
                        [](const CommandLine& line) {
                          throw treadle::UsageError("treadle-run does not execute \"" +
                                                    std::string(line.command->name) +
                                                    "\"; start workflow-runner instead");
                        }};
  return run_program(argc, argv, program);
}
