#include "runs_in_children.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cxxabi.h>
#include <atomic>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stop_token>
#include <typeinfo>

#include <treadle/base/error.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/testing/distributed/thread_communicator.h>

#include "drawing.h"
#include "random_document.h"
#include "workspace.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// A run takes a fraction of a second, but of a machine that may be busy.
constexpr std::chrono::seconds kPatience{900};

std::string type_of(const std::exception& error) {
  int status = 0;
  char* const name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  std::string text = name == nullptr ? typeid(error).name() : name;
  std::free(name);
  return text;
}

std::string message_of(const std::function<std::string()>& work) {
  try {
    return "d" + work();
  } catch (const Interrupted& error) {
    return std::string("i") + error.what();
  } catch (const std::exception& error) {
    return (is_refusal(error) ? "r" : "f") + type_of(error) + ": " + error.what();
  } catch (...) {
    return "fsomething that is no exception";
  }
}

void write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count <= 0)
      return;
    done += static_cast<std::size_t>(count);
  }
}

/// What the only run of this process is interrupted by.
struct Breaker {
  std::atomic<std::int64_t> steps{0};
  std::optional<Break> at;
  std::stop_source stop;

  void step() {
    if (!at || ++steps != at->step)
      return;
    if (at->is_kill)
      kill(getpid(), SIGKILL);
    stop.request_stop();
  }
};

Breaker& breaker() {
  static Breaker one;
  return one;
}

/// The schedule within, asked before each step.
class BrokenOff final : public LearningRateSchedule {
 public:
  BrokenOff(const Config& config, const ComponentContext& context)
      : inner_(make_nested<LearningRateSchedule>(context, config, "inner")) {}

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    breaker().step();
    return inner_->rate_at(step, span);
  }

  std::unique_ptr<LearningRateSchedule> inner_;
};

json with_breaks(json document) {
  json inner = document.contains("schedule") ? document["schedule"] : json("constant");
  json schedule = {{"use", "broken_off"}};
  if (inner.is_object()) {
    const json own = workflow_schema()["properties"]["schedule"]["properties"];
    for (const auto& [key, unused] : own.items()) {
      if (inner.contains(key)) {
        schedule[key] = inner[key];
        inner.erase(key);
      }
    }
  }
  schedule["inner"] = std::move(inner);
  document["schedule"] = std::move(schedule);
  return document;
}

template <typename Condition>
void erase_keys(json& value, const Condition& condition) {
  if (!value.is_structured())
    return;
  if (value.is_object()) {
    for (auto key = value.begin(); key != value.end();)
      key = condition(key.key()) ? value.erase(key) : std::next(key);
  }
  for (json& part : value)
    erase_keys(part, condition);
}

/// Without times, and what says where and when it ran.
std::string result_of(const fs::path& run) {
  json result = json::parse(read_file(run / "result.json"));
  for (const char* const key : {"environment", "time", "device", "started_at", "choices"})
    result.erase(key);
  erase_keys(result, [](const std::string& key) {
    return key.ends_with("_seconds") || key == "replayed_steps" || key == "not_captured";
  });
  return result.dump(1);
}

Remains remains_of(const fs::path& run) {
  Remains remains{{"history.csv", history_of(run)}, {"result.json", result_of(run)}};
  if (fs::exists(run / "model.safetensors"))
    remains["model.safetensors"] = read_file(run / "model.safetensors");
  for (const char* const folder : {"preprocessing", "tables"}) {
    if (!fs::exists(run / folder))
      continue;
    for (const auto& entry : fs::recursive_directory_iterator(run / folder)) {
      if (entry.is_regular_file())
        remains[fs::relative(entry.path(), run).string()] = read_file(entry.path());
    }
  }
  return remains;
}

/// The run in that folder, where one has begun.
std::optional<fs::path> run_in(const fs::path& output) {
  if (!fs::exists(output))
    return std::nullopt;
  for (const auto& entry : fs::directory_iterator(output)) {
    if (fs::exists(entry.path() / "workflow.json"))
      return entry.path();
  }
  return std::nullopt;
}

}  // namespace

Child::Child(const std::function<std::string()>& work, std::chrono::seconds patience)
    : until_(Clock::now() + patience) {
  int ends[2];
  TREADLE_EXPECTS(pipe(ends) == 0, "a pipe can be made");
  id_ = fork();
  TREADLE_EXPECTS(id_ >= 0, "a process can be forked");
  if (id_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    write_all(ends[1], message_of(work));
    _exit(0);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Child::~Child() {
  close(pipe_);
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
}

Ending Child::wait() {
  std::string text;
  bool is_late = false;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now());
    pollfd waiting{pipe_, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
      is_late = true;
      kill(id_, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t count = read(pipe_, buffer, sizeof buffer);
    if (count <= 0)
      break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  int status = 0;
  waitpid(id_, &status, 0);
  id_ = 0;
  if (is_late)
    return {Ending::Kind::kFailed, "did not end in time"};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    return {Ending::Kind::kKilled, ""};
  if (WIFSIGNALED(status))
    return {Ending::Kind::kFailed, std::string("crashed: ") + strsignal(WTERMSIG(status))};
  if (text.empty())
    return {Ending::Kind::kFailed, "ended with code " + std::to_string(WEXITSTATUS(status))};
  const std::map<char, Ending::Kind> kinds{{'d', Ending::Kind::kDone},
                                           {'r', Ending::Kind::kRefused},
                                           {'i', Ending::Kind::kInterrupted},
                                           {'f', Ending::Kind::kFailed}};
  return {kinds.at(text[0]), text.substr(1)};
}

int threads_here() {
  return static_cast<int>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

void add_breaks(Runtime& runtime) {
  runtime.registry().add<LearningRateSchedule>(
      "broken_off",
      [](const Config& config, const ComponentContext& context) {
        return std::make_unique<BrokenOff>(config, context);
      },
      {{"type", "object"},
       {"required", {"inner"}},
       {"properties", {{"inner", {{"x-treadle-component", "schedule"}}}}}});
}

/// With the folders of ranks.
void DocumentRuns::remove(const fs::path& output) {
  fs::remove_all(output);
  for (int rank = 1; rank < kMostProcesses; ++rank)
    fs::remove_all(output.string() + "-" + std::to_string(rank));
}

fs::path DocumentRuns::new_output() {
  return folder_ / ("run-" + std::to_string(runs_++));
}

std::string Parallelism::text() const {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
         (processes == 1 ? ""
                         : " in each of " + std::to_string(processes) + " processes, which share " +
                               (divide == "auto" ? "either" : divide));
}

bool is_shareable(const json& document) {
  const json search = document.value("search", json::object());
  return !search.contains("storage") && !search.value("budget", json::object()).contains("time");
}

namespace {

/// Where several ranks fail: the failure that is no consequence of another one.
std::exception_ptr cause_of(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (!error)
      continue;
    try {
      std::rethrow_exception(error);
    } catch (const CommunicationError&) {
      first = first ? first : error;
    } catch (...) {
      return error;
    }
  }
  return first;
}

/// `run` is called for each rank; the result is that of rank 0.
std::string in_ranks(int processes, const std::function<std::string(Communicator*)>& run) {
  if (processes == 1)
    return run(nullptr);
  std::string result;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(processes));
  at_ranks(processes, [&](Communicator& communicator) {
    try {
      const std::string of_rank = run(&communicator);
      if (communicator.rank() == 0)
        result = of_rank;
    } catch (...) {
      errors[static_cast<std::size_t>(communicator.rank())] = std::current_exception();
    }
  });
  if (const std::exception_ptr cause = cause_of(errors))
    std::rethrow_exception(cause);
  return result;
}

}  // namespace

Ending DocumentRuns::start(const json& document, const fs::path& output, int processes,
                           std::optional<Break> at) const {
  Child child(
      [&] {
        breaker().at = at;
        const auto begun = run_in(output);
        try {
          return in_ranks(processes, [&](Communicator* communicator) {
            RunOptions options;
            options.communicator = communicator;
            options.output = output;
            if (!options.is_first_rank())
              options.output = output.string() + "-" + std::to_string(communicator->rank());
            options.stop = breaker().stop.get_token();
            return begun ? resume_run(runtime_, *begun, options).folder.string()
                         : run_workflow(runtime_, runtime_.resolve(document), options)
                               .folder.string();
          });
        } catch (const StorageError& error) {
          // Given weights that do not fit are a mistake of the document.
          if (std::string(error.what()).find(kWeightsFile) != std::string::npos)
            throw DataError(error.what());
          throw;
        }
      },
      kPatience);
  return child.wait();
}

namespace {

/// Folds that do not follow one another, of as many trials as run at once.
int fits_at_once(const json& resolved, const json& result) {
  std::size_t fits = 1;
  // The splitter within another one too.
  const bool follow =
      resolved.value("validation", json::object()).dump().find("\"warm_start\":true") !=
      std::string::npos;
  if (const auto folds = result.find("fold_results"); folds != result.end() && !follow)
    fits = folds->size();
  if (const auto search = resolved.find("search"); search != resolved.end())
    fits *= std::min(search->at("parallel").get<std::size_t>(),
                     search->at("trials").get<std::size_t>());
  return static_cast<int>(fits);
}

}  // namespace

DocumentRun DocumentRuns::run(json document, Parallelism by) {
  document["resources"]["workers"] = by.workers;
  document["resources"]["divide"] = by.divide;
  const fs::path output = new_output();
  DocumentRun run{start(document, output, by.processes, std::nullopt), {}};
  if (run.ending.kind == Ending::Kind::kDone) {
    run.remains = remains_of(run.ending.text);
    const json resolved = json::parse(read_file(fs::path(run.ending.text) / "workflow.json"));
    run.shards = resolved.at("resources").at("shards").get<int>();
    run.fits =
        fits_at_once(resolved, json::parse(read_file(fs::path(run.ending.text) / "result.json")));
  }
  remove(output);
  return run;
}

std::optional<DocumentRun> DocumentRuns::run_with_breaks(
    json document, const std::vector<std::pair<Parallelism, Break>>& breaks, Parallelism last) {
  document = with_breaks(std::move(document));
  const fs::path output = new_output();
  bool is_broken_off = false;
  DocumentRun run;
  const auto go_on = [&](Parallelism by, std::optional<Break> at) {
    // The number of workers is the one thing in which a resumed document may differ.
    document["resources"]["workers"] = by.workers;
    run.ending = start(document, output, by.processes, at);
  };
  for (const auto& [by, at] : breaks) {
    go_on(by, at);
    const Ending::Kind kind = run.ending.kind;
    if (kind != Ending::Kind::kKilled && kind != Ending::Kind::kInterrupted)
      break;
    is_broken_off = true;
  }
  const Ending::Kind kind = run.ending.kind;
  if (kind == Ending::Kind::kKilled || kind == Ending::Kind::kInterrupted)
    go_on(last, std::nullopt);
  if (run.ending.kind == Ending::Kind::kDone)
    run.remains = remains_of(run.ending.text);
  remove(output);
  if (!is_broken_off && run.ending.kind == Ending::Kind::kDone)
    return std::nullopt;
  return run;
}

std::int64_t steps_in(const Remains& remains) {
  // fit,epoch,epochs,step,...: the last step of each fit counts.
  std::istringstream history(remains.at("history.csv"));
  std::string line;
  std::map<std::string, std::int64_t> steps;
  std::getline(history, line);
  while (std::getline(history, line)) {
    std::istringstream fields(line);
    std::string fit;
    std::string field;
    std::getline(fields, fit, ',');
    for (int i = 0; i < 3; ++i)
      std::getline(fields, field, ',');
    steps[fit] = std::stoll(field);
  }
  std::int64_t sum = 0;
  for (const auto& [fit, count] : steps)
    sum += count;
  return sum;
}

std::string difference(const Remains& one, const Remains& other) {
  for (const auto& [name, text] : other) {
    if (!one.contains(name))
      return name + " is not there";
  }
  for (const auto& [name, text] : one) {
    const auto found = other.find(name);
    if (found == other.end())
      return name + " should not be there";
    if (found->second == text)
      continue;
    if (name.ends_with(".safetensors"))
      return name + " differs";
    std::istringstream lines(text);
    std::istringstream other_lines(found->second);
    std::string line;
    std::string other_line;
    std::getline(lines, line);
    std::getline(other_lines, other_line);
    while (line == other_line && lines && other_lines) {
      std::getline(lines, line);
      std::getline(other_lines, other_line);
    }
    return name + " differs:\n  " + line + "\n  " + other_line;
  }
  return "";
}

Remains results_in(const Remains& remains) {
  Remains results;
  for (const auto& [name, text] : remains) {
    if (!name.starts_with("preprocessing"))
      results[name] = text;
  }
  json result = json::parse(remains.at("result.json"));
  const std::set<std::string> about_others{"choices",    "data",       "extensions",
                                           "model_info", "model_path", "metric_list"};
  result.erase("task");  // a window of a prequential training has one of its own, which counts
  erase_keys(result, [&](const std::string& key) { return about_others.contains(key); });
  results["result.json"] = result.dump(1);
  return results;
}

}  // namespace treadle::testing
