#include "verify/verification.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "command_line/answer.h"
#include "command_line/program.h"
#include "verify/evidence.h"
#include "verify/training_process.h"

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using std::chrono::milliseconds;

/// A folder for the run that is made to be compared; deleted, unless it is to be kept.
class Workplace {
 public:
  explicit Workplace(std::string kept) : kept_(std::move(kept)) {
    if (!kept_.empty()) {
      folder_ = kept_;
      fs::create_directories(folder_);
      return;
    }
    std::string name = (fs::temp_directory_path() / "treadle-verify-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw StorageError(name + ": cannot be made; set TMPDIR to a folder that can be written to");
    folder_ = name;
  }
  ~Workplace() {
    std::error_code ignored;
    if (kept_.empty())
      fs::remove_all(folder_, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const fs::path& folder() const { return folder_; }
  bool is_kept() const { return !kept_.empty(); }

 private:
  const std::string kept_;
  fs::path folder_;
};

/// Options of this command that those it starts have as well.
std::vector<std::string> passed_on(const CommandLine& line) {
  std::vector<std::string> words{"--quiet"};
  for (const char* name : {"plugin-dir", "plugin"}) {
    for (const std::string& value : line.texts(name))
      words.insert(words.end(), {"--" + std::string(name), value});
  }
  for (const char* name : {"probe", "locked"}) {
    if (line.has(name))
      words.insert(words.end(), {"--" + std::string(name), line.text(name)});
  }
  if (line.has("allow-writable-plugins"))
    words.emplace_back("--allow-writable-plugins");
  return words;
}

std::int64_t kills_of(const CommandLine& line) {
  if (!line.has("resume"))
    return 0;
  constexpr std::int64_t kMost = 1000;
  const std::string text = line.text("resume");
  std::int64_t kills = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kills);
  if (error != std::errc() || end != text.data() + text.size() || kills < 1 || kills > kMost)
    throw UsageError("--resume: expected how often to kill the training, from 1 to " +
                     std::to_string(kMost) + ", got \"" + text + "\"");
  return kills;
}

std::set<fs::path> entries_of(const fs::path& folder) {
  std::set<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    entries.insert(entry.path());
  return entries;
}

/// The training of the run's document in a folder.
class Rerun {
 public:
  Rerun(const CommandLine& line, const Evidence& before, const fs::path& folder)
      : before_(before),
        options_(passed_on(line)),
        folder_(folder),
        document_(folder / "verified.json"),
        others_(entries_of(folder)) {
    write_file_atomically(document_, before.document.dump(2));
    // Relative paths of --set are those of the folder that one works in.
    begin_ = {before.searched ? "tune" : "run", "/dev/stdin", "--output", folder.string()};
    for (const std::string& assignment : line.overrides())
      begin_.insert(begin_.end(), {"--set", assignment});
  }

  /// Kills the training `kills` times, at random instants of its way.
  std::vector<double> train(std::int64_t kills) {
    std::random_device dice;
    std::mt19937_64 random(dice());
    std::vector<double> killed_after;
    for (std::int64_t left = kills; left > 0; --left) {
      // What is left of the way gets shorter with each process.
      const double most = std::max(0.05, 1.5 * before_.seconds / static_cast<double>(kills));
      const double seconds = std::uniform_real_distribution<double>(0, most)(random);
      if (!runs_for(seconds))
        return killed_after;
      killed_after.push_back(seconds);
    }
    runs_for(std::nullopt);
    return killed_after;
  }

  /// Empty before it is made.
  fs::path run() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (!others_.contains(entry.path()) && fs::exists(entry.path() / "workflow.json"))
        return entry.path();
    }
    return {};
  }

 private:
  /// Until it ends, or has trained for so long and is killed: false where it ended.
  bool runs_for(std::optional<double> seconds) {
    std::vector<std::string> words = begin_;
    if (const fs::path begun = run(); !begun.empty())
      words = {"resume", begun.string(), "--allow-differences"};
    words.insert(words.end(), options_.begin(), options_.end());
    TrainingProcess process(words, document_);
    constexpr milliseconds kLook{20};
    std::optional<std::chrono::steady_clock::time_point> end;
    while (!process.ends_within(kLook)) {
      const fs::path begun = run();
      if (begun.empty())
        continue;  // it loads plugins, and reads the data
      expect_data(begun);
      if (!seconds)
        continue;
      const auto now = std::chrono::steady_clock::now();
      if (!end)
        end = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                        std::chrono::duration<double>(*seconds));
      if (now >= *end) {
        process.kill();
        return true;
      }
    }
    constexpr int kBySignal = 128;
    if (process.exit_code() > kBySignal && process.exit_code() != kInterrupted) {
      throw TrainingError("the training was ended by signal " +
                          std::to_string(process.exit_code() - kBySignal) +
                          ", perhaps for want of memory; verify the run again");
    }
    if (process.exit_code() != 0)
      throw AlreadyTold{static_cast<ErrorKind>(process.exit_code())};
    expect_data(run());
    return false;
  }

  /// Other data would train for hours, to be another run.
  void expect_data(const fs::path& run) {
    if (std::exchange(is_data_known_, true))
      return;
    if (!fs::exists(run / "environment.json")) {
      is_data_known_ = false;
      return;
    }
    const Json was = before_.environment.value("data_hash", Json());
    const Json is = environment_of(run).value("data_hash", Json());
    if (was == is)
      return;
    throw DataError("the data is not that of the run: its hash is " + quote_value(is) + ", was " +
                    quote_value(was) +
                    "; where it lies elsewhere here, say so: --set data.path=FILE");
  }

  static constexpr int kInterrupted = static_cast<int>(ErrorKind::kInterrupted);

  const Evidence& before_;
  const std::vector<std::string> options_;
  const fs::path folder_;
  const fs::path document_;
  const std::set<fs::path> others_;  // in the folder before
  std::vector<std::string> begin_;
  bool is_data_known_ = false;
};

Verification verified(const CommandLine& line) {
  const fs::path given = line.arguments[0];
  const std::int64_t kills = kills_of(line);
  const Evidence before = evidence_of(given);
  if (before.environment.contains("from")) {
    throw UsageError(given.string() + ": went on from " +
                     plain_text(before.environment.at("from").value("run", "another run")) +
                     ", and its document alone does not train it again; verify that run");
  }
  const Workplace workplace(line.has("output") ? line.text("output") : "");
  Rerun rerun(line, before, workplace.folder());
  Verification verification;
  verification.run = given.string();
  verification.killed_after = rerun.train(kills);
  const fs::path run = rerun.run();
  const Evidence here = evidence_of(run);
  verification.differences = differences(before, here);
  verification.conditions = different_conditions(before.environment, here.environment);
  if (workplace.is_kept())
    verification.folder = run.string();
  return verification;
}

}  // namespace

Verification verify_run(const CommandLine& line) {
  try {
    return verified(line);
  } catch (const Json::exception&) {  // of a stranger's file
    throw StorageError(line.arguments[0] +
                       ": records values of other types than a run does; it is damaged, or no "
                       "bundle of this version of Treadle");
  }
}

Json json_of(const Verification& verification) {
  return {{"run", verification.run},
          {"same", verification.differences.empty()},
          {"differences", verification.differences},
          {"conditions", verification.conditions},
          {"killed_after_seconds", verification.killed_after},
          {"folder", verification.folder}};
}

std::string text_of(const Verification& verification) {
  const bool is_same = verification.differences.empty();
  std::string text = verification.run + ": trained again, ";
  if (const std::size_t kills = verification.killed_after.size(); kills > 0) {
    text += "killed " + std::to_string(kills) + (kills == 1 ? " time (after" : " times (after");
    for (const double seconds : verification.killed_after) {
      char number[32];
      std::snprintf(number, sizeof number, " %.2f", seconds);
      text += number;
    }
    text += " s), ";
  }
  text += is_same ? "the same weights, history and result\n" : "and NOT the same\n";
  for (const std::string& difference : verification.differences)
    text += "  " + difference + "\n";
  for (const std::string& condition : verification.conditions)
    text += "  condition: " + condition + "\n";
  if (!is_same && verification.conditions.empty())
    text += "  all recorded conditions are the same\n";
  if (!verification.folder.empty())
    text += "  kept in " + verification.folder + "\n";
  return text;
}

void write_bundle(const CommandLine& line) {
  const std::string output = line.output_file("output");
  const Evidence evidence = evidence_of(line.arguments[0]);
  write_file_atomically(output, bundle_of(evidence).dump(2) + "\n");
  if (line.has("json")) {
    print(Json{{"output", output}, {"sha256", evidence.files}});
  } else if (!line.has("quiet")) {
    print(output + ": verify it elsewhere with workflow-runner verify " +
          fs::path(output).filename().string() + "\n");
  }
}

}  // namespace treadle::cli
