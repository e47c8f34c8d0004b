#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/duration.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/automl/auto_document.h>
#include <treadle/host/run/data_profile.h>
#include <treadle/host/run/workflow_run.h>

#include "command_line/answer.h"
#include "command_line/option_values.h"
#include "commands/tensor_commands.h"
#include "commands/watched_training.h"
#include "terminal/result_text.h"
#include "terminal/table_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

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

/// How long the run may take; empty: the number of trials ends it.
std::string checked_time(const CommandLine& line) {
  const std::string time = line.text("time");
  const auto is_wall_time = [&] {
    try {
      const Duration duration = Duration::parse(time);
      return duration.unit == Duration::Unit::kSeconds && duration.value > 0;
    } catch (const std::invalid_argument&) {
      return false;
    }
  };
  if (!time.empty() && !is_wall_time()) {
    throw UsageError(
        "--time: expected wall time above zero, such as \"90s\", \"20min\" or \"2h\", got " +
        quote_text(time));
  }
  return time;
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

/// Of any of the interfaces that a portfolio's documents have components of.
bool is_offered(const SchemaIndex& index, const std::string& component) {
  constexpr std::array kInterfaces{"model", "training", "callback", "layer", "graph", "loss"};
  return std::any_of(kInterfaces.begin(), kInterfaces.end(), [&](const char* interface_word) {
    return index.find(interface_word, component).schema != nullptr;
  });
}

/// Throws a UsageError where one that was named needs what is not installed.
void expect_families(const std::vector<std::string>& named,
                     const std::vector<automl::Portfolio::LeftOut>& missing) {
  for (const automl::Portfolio::LeftOut& one : missing) {
    if (std::find(named.begin(), named.end(), one.family) != named.end()) {
      throw UsageError("--families: " + quote_text(one.family) + " needs the component " +
                       quote_text(one.component) +
                       ", which no plugin here offers; leave it out, or install a plugin that "
                       "does");
    }
  }
}

struct AutoDocument {
  automl::TableReading table;
  std::vector<std::string> slow_families;                    // that the time is not enough for
  std::vector<automl::Portfolio::LeftOut> missing_families;  // that no plugin is there for
  std::shared_ptr<Document> document;
};

/// What is to be run for a table. The overrides of `data` count before the file is read; all others
/// change what was written. `folder`, where the document will be, is absolute, or empty: nowhere.
AutoDocument auto_document(const Runtime& runtime, const CommandLine& line,
                           const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const std::string& file = line.arguments[0];
  const bool is_file = !file.starts_with('{');
  // As it was typed, unless the document is written into another folder.
  const bool is_elsewhere =
      !folder.empty() && folder.lexically_normal() != fs::current_path().lexically_normal();
  const std::string path = is_file && is_elsewhere && !fs::path(file).is_absolute()
                               ? fs::absolute(file).lexically_proximate(folder).string()
                               : file;
  const auto begun = Document::from_json(
      {{"treadle", 1}, {"data", data_slot_for(runtime, path)}, {"model", "linear"}}, folder);
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
  options.name = run_name_of(is_file ? file : begun->value()["data"]["use"].get<std::string>());
  options.seed = number_of<std::uint64_t>(line, "seed", "a whole number from 0 on");
  if (line.has("trials"))
    options.trials = number_of<std::int64_t>(line, "trials", "a whole number");
  options.time = checked_time(line);
  if (const auto trials = overridden_trials(others))
    options.trials = trials;
  options.families = column_names(line, "families");
  options.workers = engine::available_cores();
  automl::Portfolio portfolio = automl::Portfolio::built_in();
  made.missing_families = portfolio.leave_out_unless(
      [&](const std::string& component) { return is_offered(runtime.schemas(), component); });
  expect_families(options.families, made.missing_families);
  made.slow_families = automl::slow_families(made.table, portfolio, options);
  made.document = Document::from_json(
      automl::auto_document(made.table, begun->value().at("data"), portfolio, options), folder);
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
  for (const automl::Portfolio::LeftOut& missing : made.missing_families) {
    text += "Left out  " + missing.family + ", whose component " + quote_text(missing.component) +
            " no plugin here offers\n";
  }
  return text;
}

}  // namespace

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
    run_options.notes_leaks = true;
    return outcome = run_workflow(runtime, workflow, run_options);
  });
  if (!line.has("json") && !line.has("quiet")) {
    const std::filesystem::path& run = outcome.folder;
    print("Again   workflow-runner run " + shown_path(run / "workflow.json") +
          "\nPredict workflow-runner predict " + shown_path(run) + " DATA -o OUT\n");
  }
}

}  // namespace treadle::cli
