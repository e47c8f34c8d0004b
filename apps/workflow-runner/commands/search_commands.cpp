#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/host/run/workflow_run.h>

#include "command_line/answer.h"
#include "command_line/option_values.h"
#include "commands/tensor_commands.h"
#include "commands/watched_training.h"
#include "terminal/progress_view.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

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

}  // namespace

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
  SharedTraining shared;
  train_watched(line, shared, [&](RunOptions options) {
    options.output = line.text("output");
    options.allow_differences = line.has("allow-differences");
    shared.connect(runtime, workflow, options);
    return run_workflow(runtime, workflow, options);
  });
}

}  // namespace treadle::cli
