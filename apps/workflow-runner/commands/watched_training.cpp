#include "commands/watched_training.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/picture.h>
#include <treadle/host/run/pipeline.h>

#include "command_line/answer.h"
#include "command_line/program.h"
#include "terminal/fatal_signals.h"
#include "terminal/progress_view.h"
#include "terminal/result_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

Interrupted stopped_run(const std::string& what, const ProgressView& view) {
  const std::string folder =
      view.folder().empty() ? "" : shown_path(folder_to_resume(view.folder()));
  return Interrupted(what + (folder.empty()
                                 ? ""
                                 : "; the run is saved in " + folder +
                                       "\nto continue it: workflow-runner resume " + folder));
}

std::string outcome_text(const RunOutcome& outcome, const Terminal& terminal) {
  return result_table(outcome.result, terminal) + "\n" + time_table(outcome.result, terminal) +
         "Report  " + shown_path(outcome.folder / "report.html") + "\n";
}

std::string outcome_text(const PipelineOutcome& outcome, const Terminal& terminal) {
  return pipeline_table(outcome.result, terminal);
}

/// The run exists, even where its outcome cannot be printed.
template <typename Outcome>
void print_outcome(const CommandLine& line, const Outcome& outcome, const Terminal& terminal) {
  try {
    if (line.has("json")) {
      print(Json{{"folder", std::filesystem::absolute(outcome.folder).string()},
                 {"result", to_json(outcome.result)}});
    } else if (!line.has("quiet")) {
      print("\n" + outcome_text(outcome, terminal));
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

}  // namespace

void FirstStep::do_run_started(const std::string&, const std::string& folder) {
  set_crash_remedy("to continue the run: workflow-runner resume " +
                   shown_path(folder_to_resume(folder)) + "\n");
}

void FirstStep::do_step_completed(const FitId&, const StepProgress&) {
  interruption_.expect_saving();
}

void train_watched(const CommandLine& line, const std::function<Outcome(RunOptions)>& train) {
  const SharedTraining alone;
  alone.expect_alone("workflow-runner " + std::string(line.command->name));
  train_watched(line, alone, train);
}

void train_watched(const CommandLine& line, const SharedTraining& shared,
                   const std::function<Outcome(RunOptions)>& train) {
  // A run goes on when nobody reads its lines any more: `workflow-runner run … | head`.
  signal(SIGPIPE, SIG_IGN);
  const bool as_json = line.has("json");
  // With --json the standard output is for the program that reads it; a person may still watch.
  const Terminal terminal(as_json ? STDERR_FILENO : STDOUT_FILENO);
  const bool is_quiet = line.has("quiet") || !shared.is_first_rank();
  ProgressView view(terminal, is_quiet || (as_json && !terminal.is_terminal()));
  const auto tell = [&](const std::string& text) {
    if (is_quiet || as_json) {
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
  std::optional<Outcome> outcome;
  try {
    outcome = train(std::move(options));
  } catch (const Interrupted& stopped) {
    view.finish();
    throw stopped_run(stopped.what(), view);
  }
  view.finish();
  if (!shared.is_first_rank())
    return;
  std::visit([&](const auto& made) { print_outcome(line, made, terminal); }, *outcome);
}

}  // namespace treadle::cli
