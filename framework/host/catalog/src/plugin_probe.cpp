#include <treadle/host/catalog/plugin_probe.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "child_process.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using internal::ChildProcess;

/// Loading libtorch on a busy machine with a cold disk.
constexpr std::chrono::seconds kStartLimit{60};

/// The caller's environment, but for what would make loading slow, reach for a GPU, or print pages
/// of stack when a plugin crashes (UCX, which Debian 13's libtorch brings): the last line a plugin
/// prints is part of its story.
std::vector<std::string> helper_environment() {
  constexpr std::string_view kSet[] = {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
                                       "MKL_NUM_THREADS=1",
                                       "CUDA_VISIBLE_DEVICES=", "UCX_HANDLE_ERRORS=none"};
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool replaced = std::any_of(std::begin(kSet), std::end(kSet), [text](auto set) {
      return text.starts_with(set.substr(0, set.find('=') + 1));
    });
    if (!replaced)
      environment.emplace_back(text);
  }
  environment.insert(environment.end(), std::begin(kSet), std::end(kSet));
  return environment;
}

/// What the helper says in one line.
struct Answer {
  std::optional<std::size_t> start;
  std::optional<std::size_t> done;
  std::string problem;
  bool may_pass = false;
  std::vector<ProbeFinding> findings;
};

std::optional<std::size_t> position(const nlohmann::json& line, std::string_view key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_unsigned())
    return std::nullopt;
  return found->get<std::size_t>();
}

/// Nothing when the line is not one of the helper's: a plugin may write to any descriptor.
std::optional<Answer> understand(const std::string& text) {
  const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object())
    return std::nullopt;
  Answer answer{position(line, kProbeStart),
                position(line, kProbeDone),
                "",
                line.value(kProbeMayPass, nlohmann::json()) == true,
                {}};
  for (const nlohmann::json& finding : line.value(kProbeFindings, nlohmann::json::array())) {
    if (finding.is_array() && finding.size() == 2 && finding[0].is_boolean() &&
        finding[1].is_string()) {
      answer.findings.push_back({finding[0].get<bool>(), finding[1].get<std::string>()});
    }
  }
  const auto problem = line.find(kProbeProblem);
  if (problem != line.end() && problem->is_string())
    answer.problem = problem->get<std::string>();
  return answer;
}

/// The last line that says something, without control characters.
std::string last_words(const std::string& output) {
  std::string words;
  std::string line;
  for (const char c : output + "\n") {
    if (c == '\n') {
      if (!line.empty())
        words = std::move(line);
      line.clear();
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      line += c;
    }
  }
  constexpr std::size_t kLongest = 200;
  return words.size() <= kLongest ? words : words.substr(0, kLongest) + "…";
}

std::string with_last_words(std::string sentence, const ChildProcess& helper) {
  const std::string words = last_words(helper.output());
  return words.empty() ? sentence : sentence + "; the last it printed: " + quote_text(words);
}

std::string duration_text(std::chrono::milliseconds limit) {
  if (limit.count() % 1000 == 0)
    return std::to_string(limit.count() / 1000) + " s";
  return std::to_string(limit.count()) + " ms";
}

std::string crash_sentence(const ChildProcess& helper) {
  return with_last_words((helper.ended_by_signal() ? "crashed while it was loaded ("
                                                   : "ended the process while it was loaded (") +
                             helper.ending() + ")",
                         helper);
}

[[noreturn]] void fail_without_answer(const ProbeOptions& options, const ChildProcess& helper,
                                      const std::string& how) {
  throw PluginError(with_last_words(options.program.string() + " does not work (" + how +
                                        "); this installation of Treadle is incomplete",
                                    helper));
}

/// One helper's life.
struct Sitting {
  /// What it said of the files it finished, in their order.
  std::vector<ProbeVerdict> finished;
  std::string printed;  ///< the last of it
  /// The file after those broke it; `verdict` says how.
  bool broke = false;
  ProbeVerdict verdict;
};

Sitting sit(const ProbeOptions& options, std::span<const fs::path> files,
            std::vector<std::string> names = {}) {
  for (const fs::path& file : files)
    names.push_back(file.string());
  ChildProcess helper(options.program, names, helper_environment(), kProbeChannel);
  Sitting sitting;
  bool started = false;  // the file at position finished.size()
  Clock::time_point begin = Clock::now();
  Clock::time_point deadline = begin + kStartLimit;
  std::string line;
  while (sitting.finished.size() < files.size()) {
    const ChildProcess::Event event = helper.next_line(line, deadline);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (event == ChildProcess::Event::kLine) {
      const std::optional<Answer> answer = understand(line);
      if (!answer)
        continue;
      if (answer->start == sitting.finished.size()) {
        started = true;
        begin = Clock::now();
        deadline = begin + options.limit;
      } else if (started && answer->done == sitting.finished.size()) {
        sitting.finished.push_back(
            {answer->problem, answer->may_pass, false, took, answer->findings});
        started = false;
        deadline = Clock::now() + kStartLimit;
      }
      continue;
    }
    helper.kill();
    if (!started) {
      fail_without_answer(
          options, helper,
          event == ChildProcess::Event::kTimeout ? "it gave no answer" : helper.ending());
    }
    sitting.broke = true;
    sitting.verdict.took = took;
    sitting.verdict.problem =
        event == ChildProcess::Event::kTimeout
            ? with_last_words("did not finish loading within " + duration_text(options.limit),
                              helper)
            : crash_sentence(helper);
    return sitting;
  }
  sitting.printed = last_words(helper.output());
  return sitting;
}

}  // namespace

fs::path default_probe_program(const fs::path& libraries) {
  return (libraries / TREADLE_LIBRARIES_TO_PROBE).lexically_normal();
}

std::vector<ProbeVerdict> PluginProbe::try_each(std::span<const fs::path> files) const {
  std::vector<ProbeVerdict> verdicts;
  while (verdicts.size() < files.size()) {
    Sitting sitting = sit(options_, files.subspan(verdicts.size()));
    const bool had_company = !sitting.finished.empty();
    std::move(sitting.finished.begin(), sitting.finished.end(), std::back_inserter(verdicts));
    if (!sitting.broke)
      break;
    if (had_company) {
      Sitting alone = sit(options_, files.subspan(verdicts.size(), 1));
      sitting.verdict = alone.broke ? alone.verdict : alone.finished.front();
      sitting.verdict.alone = true;
    }
    verdicts.push_back(std::move(sitting.verdict));
  }
  return verdicts;
}

ProbeVerdict PluginProbe::inspect(const fs::path& file) const {
  Sitting sitting = sit(options_, std::span(&file, 1), {std::string(kProbeInspect)});
  if (sitting.broke)
    return sitting.verdict;
  ProbeVerdict verdict = std::move(sitting.finished.front());
  if (verdict.problem.empty()) {
    const bool silent = sitting.printed.empty();
    verdict.findings.push_back({silent, silent
                                            ? std::string("prints nothing")
                                            : "prints, although a plugin may not; the last line: " +
                                                  quote_text(sitting.printed)});
  }
  return verdict;
}

nlohmann::json PluginProbe::ask_about_host() const {
  ChildProcess helper(options_.program, {std::string(kProbeHost)}, helper_environment(),
                      kProbeChannel);
  const Clock::time_point deadline = Clock::now() + kStartLimit;
  std::string line;
  while (helper.next_line(line, deadline) == ChildProcess::Event::kLine) {
    const nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
    if (answer.is_object() && answer.contains(kProbeHostAnswer))
      return answer.at(kProbeHostAnswer);
  }
  helper.kill();
  fail_without_answer(options_, helper, helper.ending());
}

std::string PluginProbe::try_together(std::span<const fs::path> files, std::size_t& culprit) const {
  const Sitting sitting = sit(options_, files);
  for (std::size_t i = 0; i < sitting.finished.size(); ++i) {
    if (sitting.finished[i].problem.empty())
      continue;
    culprit = i;
    return sitting.finished[i].problem;
  }
  culprit = sitting.finished.size();
  return sitting.broke ? sitting.verdict.problem : "";
}

}  // namespace treadle
