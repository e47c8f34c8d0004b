#include "way.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kNotHere = 3;  // a peer's exit code: what it needs is not installed

Environment threads_of(int threads, int blas_threads) {
  return {{"OMP_NUM_THREADS", std::to_string(threads)},
          {"MKL_NUM_THREADS", std::to_string(blas_threads)},
          {"OPENBLAS_NUM_THREADS", std::to_string(blas_threads)},
          {"PYTHONDONTWRITEBYTECODE", "1"}};
}

[[noreturn]] void fail(const std::vector<std::string>& words, const Finished& finished) {
  throw std::runtime_error(text_of(words) + "\nended with " + std::to_string(finished.status) +
                           ":\n" + finished.output + finished.errors);
}

/// A column of a history.csv: no field of it holds a comma.
std::vector<double> column_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto fields_of = [](const std::string& text) {
    std::vector<std::string> fields;
    std::istringstream stream(text);
    for (std::string field; std::getline(stream, field, ',');)
      fields.push_back(field);
    return fields;
  };
  const std::vector<std::string> names = fields_of(line);
  const auto column =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  std::vector<double> values;
  while (std::getline(file, line))
    values.push_back(std::stod(fields_of(line).at(column)));
  return values;
}

/// Of the time in which a worker had something to do.
double share_of(const json& phases, const std::string& phase) {
  double busy = 0;
  for (const auto& [name, seconds] : phases.items())
    busy += name == "idle" ? 0 : seconds.get<double>();
  return busy > 0 ? phases.at(phase).get<double>() / busy : 0;
}

double seconds_between(std::chrono::steady_clock::time_point start, std::int64_t moment) {
  return 1e-9 *
         static_cast<double>(moment - std::chrono::nanoseconds(start.time_since_epoch()).count());
}

}  // namespace

double Outcome::told_seconds_to_step() const {
  if (seconds_to_step <= 0)
    throw std::runtime_error("nobody has told when the first step was done");
  return seconds_to_step;
}

Way::~Way() = default;

std::unique_ptr<Runner> Runner::on_cpu(std::string name, const Programs& programs) {
  return std::unique_ptr<Runner>(new Runner(std::move(name), programs, "cpu", 1, 1, "eager"));
}

json Runner::run(const fs::path& folder, const std::vector<std::string>& settings,
                 Finished& finished) const {
  std::vector<std::string> words{programs_.runner.string(),
                                 "run",
                                 (folder / "workflow.json").string(),
                                 "--json",
                                 "--output",
                                 (folder / "runs").string(),
                                 "--plugin-dir",
                                 programs_.plugins.string(),
                                 "--set",
                                 "resources.workers=" + std::to_string(workers_),
                                 "--set",
                                 "resources.shards=" + std::to_string(shards_),
                                 "--set",
                                 "resources.execution=" + execution_,
                                 "--device",
                                 device_};
  for (const std::string& folder : programs_.more_plugins)
    words.insert(words.end(), {"--plugin-dir", folder});
  for (const std::string& setting : settings) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  Environment environment = threads_of(1, 1);
  // What this user has installed, and what was found out about it, is not looked at.
  environment["XDG_DATA_HOME"] = (programs_.scratch / "share").string();
  environment["XDG_CACHE_HOME"] = (programs_.scratch / "cache").string();
  finished = run_program(words, environment);
  if (finished.status != 0)
    fail(words, finished);
  return json::parse(finished.output);
}

Outcome Runner::train(const Workload& workload, const Assignment& assignment) const {
  std::vector<std::string> settings;
  if (assignment.epochs)
    settings.push_back("training.epochs=" + std::to_string(*assignment.epochs));
  if (!assignment.shuffle) {
    settings.emplace_back("training.shuffle=false");
    settings.emplace_back("validation.strategy=chronological");
  }
  if (assignment.in_double)
    settings.emplace_back("precision=float64");
  if (assignment.save_every > 0) {
    settings.push_back("training.checkpoint.every=" + std::to_string(assignment.save_every) + "st");
  }
  const fs::path moment_file = assignment.folder / "first-step";
  fs::remove(moment_file);
  Finished finished;
  const json printed = run(assignment.folder, settings, finished);
  const json& result = printed.at("result");
  const json& time = result.at("time");

  Outcome outcome;
  outcome.seconds = time.at("seconds");
  outcome.peak_bytes = result.at("environment").at("peak_memory_bytes");
  outcome.libtorch = result.at("environment").at("libtorch").get<std::string>();
  outcome.validation_share = share_of(time.at("phases"), "metrics");
  outcome.idle_share = result.value("/device/idle_fraction"_json_pointer, -1.0);
  if (result.contains("total_epochs")) {  // a cross-validation has none of its own
    outcome.losses =
        column_of(fs::path(printed.at("folder").get<std::string>()) / "history.csv", "train_loss");
    outcome.microseconds_per_step =
        result.at("training_time_seconds").get<double>() * 1e6 /
        static_cast<double>(workload.steps_per_epoch() *
                            result.at("total_epochs").get<std::int64_t>());
  }
  if (std::int64_t moment = 0; std::ifstream(moment_file) >> moment)
    outcome.seconds_to_step = seconds_between(finished.started, moment);
  fs::remove_all(assignment.folder / "runs");
  return outcome;
}

// Adam moves no weight by more than the rate in a step: at this one no bit changes.
fs::path Runner::initial_weights(const fs::path& folder, bool in_double) const {
  Finished finished;
  const json printed = run(folder,
                           {"optimizer.learning_rate=1e-30", "training.epochs=1",
                            in_double ? "precision=float64" : "precision=float32"},
                           finished);
  fs::path weights = folder / "initial.safetensors";
  fs::rename(fs::path(printed.at("folder").get<std::string>()) / "model.safetensors", weights);
  fs::remove_all(folder / "runs");
  return weights;
}

Outcome Loop::train(const Workload& workload, const Assignment& assignment) const {
  int epochs = workload.epochs();
  if (assignment.epochs)
    epochs = *assignment.epochs;
  else if (part_of_epochs_ < 1)
    epochs = std::max(1, static_cast<int>(std::lround(epochs * part_of_epochs_)));
  std::vector<std::string> words = command_;
  words.push_back(assignment.folder.string());
  words.insert(words.end(),
               {"--threads", std::to_string(threads_), "--epochs", std::to_string(epochs)});
  if (!assignment.weights.empty())
    words.insert(words.end(), {"--weights", assignment.weights.string()});
  if (!assignment.shuffle)
    words.emplace_back("--no-shuffle");
  if (assignment.in_double)
    words.emplace_back("--double");
  if (assignment.save_every > 0)
    words.insert(words.end(), {"--save-every", std::to_string(assignment.save_every)});
  Finished finished;
  try {
    finished = run_program(words, threads_of(threads_, blas_threads_));
  } catch (const CannotStart& error) {
    throw NotHere(error.what());
  }
  if (finished.status == kNotHere)
    throw NotHere(finished.errors.substr(0, finished.errors.find('\n')));
  if (finished.status != 0)
    fail(words, finished);

  const json line = json::parse(finished.output);
  Outcome outcome;
  outcome.losses = line.value("losses", std::vector<double>());
  outcome.microseconds_per_step = line.value("microseconds_per_step", 0.0);
  outcome.seconds = line.value("seconds", 0.0);
  if (line.contains("first_step"))
    outcome.seconds_to_step = seconds_between(finished.started, line.at("first_step"));
  outcome.peak_bytes = finished.peak_bytes;
  outcome.libtorch = line.at("libtorch").get<std::string>();
  return outcome;
}

}  // namespace treadle::benchmarks
