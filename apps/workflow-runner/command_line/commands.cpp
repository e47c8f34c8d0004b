#include "command_line/commands.h"

#include <algorithm>

namespace treadle::cli {
namespace {

constexpr Argument kDocument{"DOCUMENT", "the workflow, a JSON file"};
constexpr Argument kDocumentUnlessFrom{"DOCUMENT", "the workflow, a JSON file; not with --from",
                                       /*is_optional=*/false, /*repeats=*/false, "from"};
constexpr Argument kDocumentUnlessThereIs{"DOCUMENT",
                                          "the workflow, a JSON file; not with --resume or --join",
                                          /*is_optional=*/false,
                                          /*repeats=*/false,
                                          "resume",
                                          "join"};
constexpr Argument kRun{"RUN", "the folder of a run"};
constexpr Argument kModelOfRun{"RUN", "the folder of a run, or what \"runs export\" made of one"};
constexpr Argument kVerified{"RUN", "the folder of a run, or what \"runs bundle\" made of one"};
constexpr Argument kRuns{"RUN", "folders of two or more runs",
                         /*is_optional=*/false, /*repeats=*/true};
constexpr Argument kGraftedRuns{"RUN", "folders of runs whose models are flows",
                                /*is_optional=*/false, /*repeats=*/true};
constexpr Argument kMeasured{"DOCUMENT", "times the models of these; without: layers of many sizes",
                             /*is_optional=*/true, /*repeats=*/true};
constexpr Argument kData{"DATA",
                         "a file of the kind the run was trained on, or parameters as JSON"};
constexpr Argument kEvaluatedData{"DATA",
                                  "such a file with targets; may be left out with --explain",
                                  /*is_optional=*/true};

constexpr Option kSet{"set", 0,  "KEY=VALUE",
                      true,  "", "replaces one value of the document; may be repeated"};
constexpr Option kPluginDir{"plugin-dir", 0,  "DIR",
                            true,         "", "looks for plugins here first; may be repeated"};
constexpr Option kPlugin{"plugin", 0,  "FILE",
                         true,     "", "uses this plugin, before all folders; may be repeated"};
constexpr Option kProbe{
    "probe", 0,  "WHEN",
    false,   "", "probes plugins in a helper process first: changed, always or never"};
constexpr Option kLocked{"locked", 0,  "FILE",
                         false,    "", "uses exactly the plugins this lock file names, or none"};
constexpr Option kLockOutput{
    "output", 'o', "FILE", false, "plugins.lock", "the lock file to write"};
constexpr Option kAllowWritable{
    "allow-writable-plugins", 0, "", false, "", "uses plugins that others may write to"};
constexpr Option kQuiet{"quiet", 'q', "", false, "", "prints nothing but errors"};
constexpr Option kJson{"json", 0, "", false, "", "prints one JSON object, also for errors"};
constexpr Option kOutput{"output", 'o', "DIR", false, "runs", "where the run's folder is made"};
constexpr Option kOutputFile{
    "output", 'o', "OUT", false, "", "the file to write: CSV, or by its ending .jsonl, .parquet …",
    true};
constexpr Option kTableOfRun{"table", 0,  "TABLE",
                             false,   "", "a table of the run instead: history or predictions"};
constexpr Option kExplain{"explain", 0,  "",
                          false,     "", "adds reasons: importances, SHAP values, worst rows"};
constexpr Option kKeep{
    "keep", 0,  "COLUMN[,COLUMN]",
    true,   "", "copies these columns of DATA beside the predictions; may be repeated"};
constexpr Option kHorizon{"horizon", 0,  "STEPS",
                          false,     "", "continues each series of DATA by so many steps instead"};
constexpr Option kSamples{"samples", 0,  "COUNT",
                          false,     "", "draws samples of the predicted distributions"};
constexpr Option kUncertainty{
    "uncertainty", 0,  "",
    false,         "", "adds how uncertain predictions are: in total, aleatoric, epistemic"};
constexpr Option kMcDropout{
    "mc-dropout", 0,  "PASSES",
    false,        "", "predicts the mean of passes with dropout, with its uncertainty"};
constexpr Option kDrawSeed{"seed",
                           's',
                           "SEED",
                           false,
                           "",
                           "of samples or dropout: the same seed, the same draws "
                           "(default: 0)"};
constexpr Option kPrompt{"prompt", 'p', "TEXT",
                         false,    "",  "the beginning of the text (default: none)"};
constexpr Option kMaxNewTokens{
    "max-new-tokens", 'n', "COUNT", false, "200", "how many tokens to write at most"};
constexpr Option kTemperature{
    "temperature", 't', "T", false, "1", "below 1: surer of itself; 0: always the likeliest token"};
constexpr Option kTopK{"top-k", 'k', "K",
                       false,   "0", "draws from the K likeliest tokens; 0: from all"};
constexpr Option kTopP{"top-p", 0,   "P",
                       false,   "1", "draws from the likeliest tokens that make up P"};
constexpr Option kSeed{"seed", 's', "SEED",
                       false,  "0", "of the draws: the same seed, the same text"};
constexpr Option kStop{"stop", 0, "TEXT", true, "", "ends in front of this text; may be repeated"};
constexpr Option kModelFile{"output", 'o', "FILE", false, "", "the file to write", true};
constexpr Option kWeightDtype{
    "dtype", 0,  "DTYPE",
    false,   "", "parameters: float32, bfloat16, float16, int8 (default: as trained)"};
constexpr Option kGraftedNode{
    "node", 0,  "NAME",
    false,  "", "the node up to which each run's network is taken, by its id or name",
    true};
constexpr Option kCombine{"combine", 0,     "HOW",
                          false,     "cat", "cat, add, mean, grid_cat, or gate: weighted by row"};
constexpr Option kFrozen{"frozen", 0, "", false, "", "trains the head, and not what was grafted"};
constexpr Option kGraftOutput{"output", 'o', "FILE", false, "graft.json", "the document to write"};
constexpr Option kDescriptionOutput{
    "output", 'o', "FILE", false, "", "also writes the description as JSON; -: only that"};
constexpr Option kMachineOutput{
    "output", 'o', "FILE", false, "machine.json", "the file to write, for \"search\""};
constexpr Option kContract{
    "contract", 0, "", false, "", "also tests what each component of an interface must keep"};
constexpr Option kProjectDir{"dir", 0, "DIR", false, "", "where (default: NAME with dashes)"};
constexpr Option kPluginId{"id",  0,  "ID",
                           false, "", "the plugin's id (default: org.example.NAME with dashes)"};
constexpr Option kDryRun{"dry-run", 0,  "",
                         false,     "", "also reads the data and trains for a few steps"};
constexpr Option kAllowDifferences{"allow-differences",
                                   0,
                                   "",
                                   false,
                                   "",
                                   "continues although plugins, libtorch, hardware or data differ"};

constexpr Option kFrom{"from", 0,  "RUN",
                       false,  "", "trains this run further, as changed by --set, as a new run"};
constexpr Option kReuse{"reuse", 0,  "RUN",
                        false,   "", "of a pipeline: takes over what this run has of its stages"};
constexpr Option kResume{"resume", 0,  "RUN",
                         false,    "", "continues this search, as the options below change it"};
constexpr Option kJoin{"join", 0,  "STORAGE",
                       false,  "", "takes trials of a search elsewhere: sqlite:study.db"};
constexpr Option kStudy{"study", 0,  "NAME",
                        false,   "", "with --join: which study, where there are several"};
constexpr Option kAddTrials{"add-trials", 0,  "COUNT",
                            false,        "", "with --resume: makes so many more trials"};
constexpr Option kTimeBudget{
    "time", 0, "DURATION", false, "", "the time budget: \"2h\", \"30min\"; the best so far counts"};
constexpr Option kTrials{"trials", 0, "COUNT", false, "", "how many trials, at most"};
constexpr Option kPointsOnly{"points-only", 0,  "FILE",
                             false,         "", "writes the points to try, and trains nothing"};
constexpr Option kCancel{"cancel", 0, "TRIAL", false, "", "with --resume: only cancels this trial"};
constexpr Option kDevice{
    "device", 0, "NAME", false, "", "trains or computes on this device: cpu, cuda, cuda:1, auto"};
constexpr Option kModel{"model", 0, "", false, "", "draws the model's graph instead of the stages"};
constexpr Option kTable{
    "table", 0, "", false, "", "with --model: lists its nodes, their output shapes and parameters"};
constexpr Option kPlan{"plan", 0,  "",
                       false,  "", "with --model: lists the compiled plan of a training batch"};
constexpr Option kInference{
    "inference", 0, "", false, "", "with --plan: lists the compiled plan of a prediction instead"};
constexpr Argument kTableFile{
    "DATA", "a table: a file, CSV or as its ending says, or a document's \"data\""};
constexpr Option kTarget{"target", 't', "COLUMN",
                         false,    "",  "the column to predict: its name, or its index from 0",
                         true};
constexpr Option kTask{"task", 0,      "TASK",
                       false,  "auto", "classification, regression, or as the target looks"};
constexpr Option kDrop{
    "drop", 0,  "COLUMN[,COLUMN]",
    true,   "", "leaves out these columns, such as identifiers; may be repeated"};
constexpr Option kTypes{"types", 0,  "COLUMN=TYPE",
                        true,    "", "takes columns for number, category or date: a=date,b=number"};
constexpr Option kSearchTime{"time", 0,  "DURATION",
                             false,  "", "ends the search after so long, such as 20m"};
constexpr Option kAutoTrials{
    "trials", 0, "COUNT", false, "", "trials at most (default: 50, or what --time is enough for)"};
constexpr Option kFamilies{"families", 0,  "NAME[,NAME]",
                           true,       "", "tries these kinds of models only; may be repeated"};
constexpr Option kRunSeed{"seed", 's', "SEED", false, "0", "all randomness of the run"};
constexpr Option kDocumentOnly{"document-only", 0,  "FILE",
                               false,           "", "writes the document, and trains nothing"};
constexpr Option kKills{
    "resume", 0,  "COUNT",
    false,    "", "kills the training so often, at random instants, and resumes it"};
constexpr Option kKeptOutput{"output", 'o', "DIR",
                             false,    "",  "keeps the new run there (default: it is deleted)"};
constexpr Option kRunsDir{"dir", 0, "DIR", false, "runs", "where the folders of the runs are"};
constexpr Option kSort{"sort", 0,  "NAME",
                       false,  "", "sorts by a metric, best first, or by another column"};
constexpr Option kOn{
    "on", 0, "ROWS", false, "validation", "compares by validation or by test rows"};
constexpr Option kAt{"at",  0,  "BUDGET",
                     false, "", "updates or time: compares after as many updates, or as long"};
constexpr Option kDisagreements{
    "disagreements", 0,  "",
    false,           "", "compares the models row by row, on rows that all runs held out"};
constexpr Option kRows{
    "rows", 0,  "FILE",
    false,  "", "writes these rows with the target and each run's prediction, as CSV"};
constexpr Option kRowsOf{
    "data", 0, "DATA", false, "", "compares on the rows of this file that no run was trained on"};
constexpr Option kMinCoverage{
    "min-coverage", 0,   "SHARE",
    false,          "0", "lists pairs that have one right on this share of rows"};
constexpr Option kCsv{"csv", 0, "", false, "", "prints the table as CSV"};
constexpr Option kSvg{"svg", 0, "FILE", false, "", "writes the picture as SVG (needs Graphviz)"};
constexpr Option kTrace{"trace", 0,  "FILE",
                        false,   "", "writes a trace of all threads, for ui.perfetto.dev"};

constexpr Argument kLaunchedCommand{
    "COMMAND",
    "run, tune or resume with its arguments and options; a DOCUMENT alone is run",
    /*is_optional=*/false,
    /*repeats=*/true,
    {},
    {},
    "check"};
constexpr Option kHosts{"hosts", 0,   "COUNT",
                        false,   "1", "hosts of the group; start a launch on each of them"};
constexpr Option kHost{"host", 0, "NUMBER", false, "0", "with --hosts: which one this is, from 0"};
constexpr Option kMeetingPlace{"at",  0,  "HOST:PORT",
                               false, "", "with --hosts: host 0, and a port that is free there"};
constexpr Option kCheckGroup{
    "check", 0,  "",
    false,   "", "trains nothing: checks hosts, versions and the speed of the exchange"};
constexpr Option kCheckJson{"json", 0,  "",
                            false,  "", "with --check: prints one JSON object, also for errors"};
constexpr Option kProcesses{
    "processes", 'n', "COUNT", false, "", "how many processes to start on this host", true};
constexpr Option kRestarts{"restarts", 0,   "COUNT",
                           false,      "3", "how often to restart after the loss of a process"};
constexpr Option kLeastProcesses{
    "min-processes", 0,  "COUNT",
    false,           "", "continues with fewer, down to these, where a restart fails at once"};
constexpr Option kTimeout{"timeout", 0,     "DURATION",
                          false,     "60s", "how long processes wait for each other"};

/// Which plugins there are: options of all commands that use components.
constexpr Option kPlugins[] = {kPluginDir, kPlugin, kProbe, kAllowWritable};
constexpr Option kLockable[] = {kPluginDir, kPlugin, kProbe, kLocked, kAllowWritable};

std::vector<Option> joined(std::initializer_list<Option> first, std::span<const Option> group,
                           std::initializer_list<Option> last) {
  std::vector<Option> all(first);
  all.insert(all.end(), group.begin(), group.end());
  all.insert(all.end(), last);
  return all;
}

}  // namespace

std::span<const Command> commands() {
  static const std::vector<Command> kCommands{
      {"run",
       "Trains, validates and reports what a document describes.",
       {kDocumentUnlessFrom},
       joined({kSet, kFrom, kReuse, kAllowDifferences, kOutput, kDevice, kTrace}, kLockable,
              {kQuiet, kJson}),
       "run examples/iris.json --set optimizer.learning_rate=0.003",
       true},
      {"tune",
       "Searches for good values, as the document's \"search\" describes.",
       {kDocumentUnlessThereIs},
       joined({kTrials, kTimeBudget, kPointsOnly, kSet, kResume, kAddTrials, kCancel, kJoin, kStudy,
               kAllowDifferences, kOutput, kDevice, kTrace},
              kLockable, {kQuiet, kJson}),
       "tune examples/search.json --time 10min",
       true},
      {"check",
       "Checks a document and reports every problem at once.",
       {kDocument},
       joined({kDryRun, kSet, kDevice}, kLockable, {kQuiet, kJson}),
       "check examples/iris.json --dry-run",
       false,
       {"dry-run"}},
      {"data describe",
       "Describes a document's data: columns, correlations, drift, suspected leaks.",
       {kDocument},
       joined({kDescriptionOutput, kSet}, kLockable, {kQuiet, kJson}),
       "data describe examples/iris.json -o iris.data.json",
       true},
      {"auto",
       "Finds a model for a table: shows its columns, searches, trains, reports.",
       {kTableFile},
       joined({kTarget, kTask, kDrop, kTypes, kSearchTime, kAutoTrials, kFamilies, kRunSeed,
               kDocumentOnly, kSet, kOutput, kDevice, kTrace},
              kLockable, {kQuiet, kJson}),
       "auto data.csv --target price --trials 30",
       true},
      {"resume",
       "Continues a run that was stopped or killed.",
       {kRun},
       joined({kAllowDifferences, kDevice, kTrace}, kLockable, {kQuiet, kJson}),
       "resume runs/iris-20300501-101500",
       true},
      {"launch",
       "Trains with several processes, and restarts them when one is lost.",
       {kLaunchedCommand},
       {kProcesses, kHosts, kHost, kMeetingPlace, kRestarts, kLeastProcesses, kTimeout, kCheckGroup,
        kCheckJson},
       "launch --processes 4 run examples/iris.json",
       false,
       {},
       true},
      {"evaluate",
       "Evaluates a run's model on a file with targets.",
       {kModelOfRun, kEvaluatedData},
       joined({kExplain, kDevice}, kLockable, {kQuiet, kJson}),
       "evaluate runs/iris-20300501-101500 more.csv",
       true},
      {"predict",
       "Predicts for the rows of a file; columns are matched by name.",
       {kModelOfRun, kData},
       joined(
           {kOutputFile, kKeep, kHorizon, kSamples, kUncertainty, kMcDropout, kDrawSeed, kDevice},
           kLockable, {kQuiet, kJson}),
       "predict runs/iris-20300501-101500 new.csv -o predicted.csv --keep id",
       true},
      {"generate",
       "Writes a text with a run's language model.",
       {kModelOfRun},
       joined({kPrompt, kMaxNewTokens, kTemperature, kTopK, kTopP, kSeed, kStop, kDevice},
              kLockable, {kJson}),
       "generate runs/shakespeare-20300501-101500 --prompt ROMEO: --temperature 0.8",
       true},
      {"graft",
       "Writes the document of a network made of pieces of trained ones.",
       {kGraftedRuns},
       joined({kGraftedNode, kCombine, kFrozen, kSet, kGraftOutput}, kLockable, {kQuiet, kJson}),
       "graft runs/first runs/second --node dense_1 --combine cat -o graft.json",
       true},
      {"compare",
       "Compares runs: metrics, settings, differences with tests, rows.",
       {kRuns},
       joined({kSort, kOn, kAt, kDisagreements, kRows, kRowsOf, kMinCoverage, kDevice}, kLockable,
              {kCsv, kJson}),
       "compare runs/* --sort accuracy",
       false,
       {"disagreements", "rows", "data", "min-coverage"}},
      {"verify",
       "Trains a run again and compares every bit: weights, history, result.",
       {kVerified},
       joined({kKills, kSet, kKeptOutput}, kLockable, {kQuiet, kJson}),
       "verify runs/iris-20300501-101500 --resume 3",
       false},
      {"runs list",
       "Lists runs with start, state and results.",
       {},
       {kRunsDir, kJson},
       "runs list --dir runs",
       false},
      {"runs export",
       "Writes a run's model as one file, with all that predicting needs.",
       {kRun},
       joined({kModelFile, kWeightDtype, kTableOfRun}, kLockable, {kQuiet, kJson}),
       "runs export runs/iris-20300501-101500 -o iris.safetensors --dtype int8",
       true},
      {"runs bundle",
       "Writes what another machine needs to verify a run: document, conditions, hashes.",
       {kRun},
       {kModelFile, kQuiet, kJson},
       "runs bundle runs/iris-20300501-101500 -o iris.bundle.json",
       false},
      {"plugins list",
       "Lists the components there are, and plugins that cannot be used.",
       {{"INTERFACE", "lists only these: data, model, optimizer …", true}},
       joined({}, kPlugins, {kJson}),
       "plugins list --plugin-dir build/plugins",
       false},
      {"plugins describe",
       "Explains a component: parameters, keys of its slot, ranges, an example.",
       {{"INTERFACE", "its interface, where several components share the name: data, model …",
         true},
        {"NAME", "the component's name"}},
       joined({}, kPlugins, {kJson}),
       "plugins describe adamw",
       false},
      {"plugins why",
       "Explains why a plugin is used or not.",
       {{"NAME", "a plugin's id, a component's name, or the path of a library"}},
       joined({}, kPlugins, {kJson}),
       "plugins why adamw",
       false},
      {"plugins check",
       "Checks a plugin before you distribute it.",
       {{"FILE", "the plugin's library"}},
       {kContract, kPluginDir, kProbe, kAllowWritable, kQuiet, kJson},
       "plugins check build/plugins/signum.so --contract",
       false},
      {"plugins lock",
       "Writes a lock file of all plugins, for --locked.",
       {},
       joined({kLockOutput}, kPlugins, {kQuiet, kJson}),
       "plugins lock -o plugins.lock",
       false},
      {"plugins doctor",
       "Examines libtorch, BLAS, search path, cache, permissions and plugins.",
       {},
       joined({}, kPlugins, {kJson}),
       "plugins doctor",
       false},
      {"plugins new",
       "Writes a plugin to begin from: a project that builds, with tests and an example.",
       {{"INTERFACE", "the component's interface: data, model, optimizer …"},
        {"NAME", "the component's name, in snake_case"}},
       {kProjectDir, kPluginId, kJson},
       "plugins new optimizer signum --dir my-signum",
       false},
      {"devices",
       "Lists what models can be trained on, and why other devices are not there.",
       {},
       joined({}, kLockable, {kJson}),
       "devices",
       true},
      {"graph",
       "Draws the stages of a workflow, or its model, as Graphviz source.",
       {kDocument},
       joined({kModel, kTable, kPlan, kInference, kSvg, kSet}, kPlugins, {kJson}),
       "graph examples/iris.json --svg iris.svg",
       true},
      {"latency",
       "Measures how long forward passes take here, for searches by \"latency\".",
       {kMeasured},
       joined({kMachineOutput, kSet}, kPlugins, {kQuiet, kJson}),
       "latency -o machine.json",
       true},
      {"schema",
       "Prints the JSON Schema of documents, for editors.",
       {},
       joined({}, kPlugins, {kJson}),
       "schema > treadle.schema.json",
       false},
  };
  return kCommands;
}

const Command* find_command(std::string_view name) {
  const auto found = std::find_if(commands().begin(), commands().end(),
                                  [&](const Command& command) { return command.name == name; });
  return found == commands().end() ? nullptr : &*found;
}

std::size_t required_arguments(const Command& command) {
  return static_cast<std::size_t>(
      std::count_if(command.arguments.begin(), command.arguments.end(),
                    [](const Argument& argument) { return !argument.is_optional; }));
}

std::vector<std::string> second_words(std::string_view first) {
  std::vector<std::string> words;
  for (const Command& command : commands()) {
    if (command.name.size() > first.size() && command.name.starts_with(first) &&
        command.name[first.size()] == ' ') {
      words.emplace_back(command.name.substr(first.size() + 1));
    }
  }
  return words;
}

}  // namespace treadle::cli
