// Whole trainings through workflow-runner beside what people would use instead, each in a process
// of its own, in turn.
//
//   whole-steps [ROUNDS] [--only NAME] [--quick] [--folder DIR] [--python PROGRAM]
//               [--device NAME [--plugin-dir DIR]] [--against BUILD]
//
// ROUNDS: how often each is measured, default 7. --only: this workload; may be repeated. --quick:
// tiny workloads, to see whether everything works and computes the same. --folder: workloads are
// written here, and stay. --python: for the peers; by default the system's, which is the one that
// has the system's packages. --device: an accelerator, such as cuda; steps are captured there, and
// the others are those that people use there. --plugin-dir: where its plugin is, unless it is
// installed. --against: the runner alone, beside that of another build folder, in which the target
// benchmark-plugins was built: whether anything became slower. Ends with 1 when two ways did not
// compute the same; no time makes it fail.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "against.h"
#include "chapters.h"

namespace {

using namespace treadle::benchmarks;
namespace fs = std::filesystem;

struct Options {
  Effort effort;
  std::set<std::string> only;  ///< empty: all
  fs::path folder;             ///< empty: a temporary one
  fs::path python = "/usr/bin/python3";
  std::string device = "cpu";
  std::vector<std::string> plugins;
  fs::path against;  ///< a build folder; empty: beside other ways to train, not another build
};

/// Throws std::invalid_argument.
Options options_of(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--quick") {
      options.effort.is_quick = true;
    } else if (words[i] == "--only" && has_value) {
      options.only.insert(words[++i]);
    } else if (words[i] == "--folder" && has_value) {
      options.folder = words[++i];
    } else if (words[i] == "--python" && has_value) {
      options.python = words[++i];
    } else if (words[i] == "--device" && has_value) {
      options.device = words[++i];
    } else if (words[i] == "--plugin-dir" && has_value) {
      options.plugins.push_back(words[++i]);
    } else if (words[i] == "--against" && has_value) {
      options.against = fs::absolute(words[++i]);
    } else if (words[i].find_first_not_of("0123456789") == std::string::npos) {
      options.effort.rounds = std::max(1, std::stoi(words[i]));
    } else {
      throw std::invalid_argument("what is " + words[i] + "?");
    }
  }
  return options;
}

constexpr std::int64_t kQuickSteps = 8;  // an epoch
constexpr int kQuickEpochs = 2;

/// In the order in which they are measured, and with what.
const std::vector<std::pair<std::string, Chapter>> kChapters{{"steps", measure_steps},
                                                             {"saving", measure_saving},
                                                             {"folds", measure_folds},
                                                             {"start-up", measure_start_up}};

std::vector<Workload> all_workloads() {
  std::vector<fs::path> documents;
  for (const auto& entry : fs::directory_iterator(TREADLE_BENCHMARK_WORKLOADS))
    documents.push_back(entry.path());
  std::sort(documents.begin(), documents.end());
  return {documents.begin(), documents.end()};
}

/// Throws std::invalid_argument where nothing would be measured.
void expect_known(const std::set<std::string>& names, const std::vector<Workload>& workloads) {
  std::set<std::string> known;
  for (const Workload& workload : workloads) {
    known.insert(workload.name());
    const bool is_measured =
        std::any_of(kChapters.begin(), kChapters.end(),
                    [&](const auto& chapter) { return chapter.first == workload.chapter(); });
    if (!is_measured)
      throw std::invalid_argument(workload.name() + " is for \"" + workload.chapter() +
                                  "\", which nobody measures");
  }
  for (const std::string& name : names) {
    if (known.count(name) == 0)
      throw std::invalid_argument("there is no workload " + name);
  }
}

/// A folder that is gone afterwards, unless somebody has asked for it.
class Scratch {
 public:
  explicit Scratch(const fs::path& wanted) : path_(wanted), stays_(!wanted.empty()) {
    if (stays_) {
      fs::create_directories(path_);
      path_ = fs::canonical(path_);
    } else {
      std::string pattern = (fs::temp_directory_path() / "treadle-whole-steps-XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr)
        throw std::runtime_error("no temporary folder: " + pattern);
      path_ = pattern;
    }
  }
  ~Scratch() {
    if (!stays_)
      fs::remove_all(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool stays_;
};

bool measure(const Options& options) {
  const Scratch scratch(options.folder);
  const Programs programs{.runner = TREADLE_RUNNER,
                          .plugins = TREADLE_BENCHMARK_PLUGINS,
                          .by_hand = fs::canonical("/proc/self/exe").parent_path() / "by-hand",
                          .python = options.python,
                          .peers = TREADLE_BENCHMARK_PEERS,
                          .scratch = scratch.path(),
                          .device = options.device,
                          .more_plugins = options.plugins};
  Programs other = programs;
  other.runner = options.against / "benchmarks/prefix/bin/workflow-runner";
  other.plugins = options.against / "benchmarks/plugins/plugins";
  const std::vector<Workload> workloads = all_workloads();
  expect_known(options.only, workloads);
  bool all_agree = true;
  std::vector<std::string> slower;
  for (const auto& [name, chapter] : kChapters) {
    for (Workload workload : workloads) {
      const bool is_wanted = options.only.empty() || options.only.count(workload.name()) > 0;
      if (workload.chapter() != name || !is_wanted)
        continue;
      if (options.device != "cpu")
        workload = workload.on_device();
      if (options.effort.is_quick)
        workload = workload.shortened(kQuickSteps, kQuickEpochs);
      const fs::path folder = scratch.path() / workload.name();
      workload.write(folder);
      std::printf("\n%s: %s%s\n", workload.name().c_str(), workload.description().c_str(),
                  options.effort.is_quick ? "; so few steps that their times say nothing" : "");
      if (options.against.empty())
        all_agree = chapter(workload, folder, programs, options.effort) && all_agree;
      else if (measure_against(workload, folder, programs, other, options.effort))
        slower.push_back(workload.name());
    }
  }
  if (!options.against.empty())
    std::printf("\nslower than before: %s\n", slower.empty() ? "nothing" : text_of(slower).c_str());
  return all_agree;
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    return measure(options_of({arguments + 1, arguments + argument_count})) ? 0 : 1;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "whole-steps: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "whole-steps: %s\n", error.what());
    return 1;
  }
}
