#include "processes/rank_group.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/system/host_name.h>
#include <treadle/host/launch/group_variables.h>
#include <treadle/host/launch/worker_place.h>

namespace treadle::launch {
namespace {

using std::chrono::milliseconds;

constexpr int kStopped = static_cast<int>(ErrorKind::kInterrupted);
constexpr int kLost = static_cast<int>(ErrorKind::kCommunication);
constexpr int kBySignal = 128;

/// Between two looks at processes and beats.
constexpr milliseconds kLook{200};

constexpr std::size_t kTailBytes = 4096;
constexpr std::size_t kTailLines = 12;

/// Those of other launchers would contradict ours; ours, where they are set, are of an outer group.
constexpr std::array<std::string_view, 6> kForeignPrefixes{
    "OMPI_COMM_WORLD_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_", "MPI_LOCAL"};
constexpr std::array<std::string_view, 8> kForeignNames{
    "RANK",        "WORLD_SIZE",  "LOCAL_RANK",       "LOCAL_WORLD_SIZE",
    "MASTER_ADDR", "MASTER_PORT", variable::kAddress, variable::kHeartbeat};

bool is_foreign(std::string_view name) {
  return std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end();
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

/// A shell that runs the program reports its signal in this way.
int signal_of(int status) {
  if (WIFSIGNALED(status))
    return WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  const bool is_signal = code > kBySignal && code != kStopped && code < kBySignal + NSIG;
  return is_signal ? code - kBySignal : 0;
}

std::string remedy_for(int signal) {
  return signal == SIGKILL
             ? "; the system kills processes when memory runs out (see dmesg): start fewer of them"
             : "";
}

}  // namespace

RankGroup::RankGroup(Plan plan) : plan_(std::move(plan)) {
  for (std::int64_t i = 0; i < plan_.processes; ++i) {
    const std::int64_t rank = plan_.first_rank + i;
    processes_.emplace_back(
        rank, RankProcess::Start{plan_.command, environment_of(i),
                                 rank == 0 ? std::filesystem::path() : folder_.output_of(rank)});
  }
}

std::vector<std::string> RankGroup::environment_of(std::int64_t local_rank) const {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const Variables ours{{variable::kRank, number(plan_.first_rank + local_rank)},
                       {variable::kWorldSize, number(plan_.world_size)},
                       {variable::kLocalRank, number(local_rank)},
                       {variable::kLocalWorldSize, number(plan_.processes)},
                       {variable::kJobId, plan_.job_id},
                       {variable::kGeneration, number(plan_.generation)},
                       {variable::kToken, plan_.token},
                       {variable::kGroupFolder, folder_.path().string()},
                       {variable::kWorkers, number(plan_.workers)},
                       {variable::kTimeout, number(plan_.timeout.count())}};
  Variables all = environment_variables();
  std::erase_if(all, [](const auto& entry) { return is_foreign(entry.first); });
  for (const auto& [name, value] : ours)
    all[name] = value;
  if (!plan_.address.empty())
    all[variable::kAddress] = plan_.address;
  std::vector<std::string> environment;
  for (const auto& [name, value] : all)
    environment.push_back(name + "=" + value);
  return environment;
}

void RankGroup::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const RankProcess& process : processes_)
    descriptors.push_back({process.heartbeat().supervisor_end(), POLLIN, 0});
}

milliseconds RankGroup::patience() const {
  const auto now = Clock::now();
  milliseconds left = kLook;
  for (const auto& deadline : {ask_at_, kill_at_}) {
    if (deadline)
      left = std::min(left, std::chrono::duration_cast<milliseconds>(*deadline - now));
  }
  return std::max(left, milliseconds(1));
}

void RankGroup::check() {
  const auto now = Clock::now();
  processes_.remove_if([&](RankProcess& process) {
    // First: all it sent before its end has arrived by then.
    const bool has_ended = process.has_ended();
    process.heartbeat().listen(now);
    last_step_ = std::max(last_step_, process.heartbeat().last_step());
    if (has_ended)
      note_end(process);
    return has_ended;
  });
  if (!failure_)
    note_hangs(now);
  if (ask_at_ && now >= *ask_at_) {
    note_frozen();
    ask_at_.reset();
    kill_at_ = now + plan_.grace;
    send(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    for (RankProcess& process : processes_)
      process.kill();
    processes_.clear();
  }
}

void RankGroup::note_end(const RankProcess& process) {
  const int signal = signal_of(process.status());
  const int code = WIFEXITED(process.status()) ? WEXITSTATUS(process.status()) : 0;
  const bool was_asked = is_stopping_ || is_ending();
  if (WIFEXITED(process.status()) && code == 0)
    return;
  if (code == kStopped || signal == SIGTERM || signal == SIGINT) {
    // Whoever has stopped one of them means the group.
    was_stopped_ = true;
    if (!was_asked)
      ask_to_stop();
    return;
  }
  Failure failure{process.rank()};
  failure.is_lost = signal != 0 || code == kLost;
  failure.is_cause = code != kLost;
  failure.code = failure.is_lost ? kLost : code;
  failure.message = words_of(process) +
                    (signal != 0 ? " was killed by " + signal_name(signal)
                                 : " ended with exit code " + std::to_string(code)) +
                    step_words(process.heartbeat().last_step()) + remedy_for(signal);
  note(std::move(failure));
}

void RankGroup::note_hangs(Clock::time_point now) {
  const RankProcess* worst = nullptr;
  for (const RankProcess& process : processes_) {
    if (process.heartbeat().silence(now) < plan_.silence)
      continue;
    // Those that wait for it have done as many steps, or more.
    if (worst == nullptr || process.heartbeat().last_step() < worst->heartbeat().last_step() ||
        (process.heartbeat().last_step() == worst->heartbeat().last_step() && process.is_frozen() &&
         !worst->is_frozen()))
      worst = &process;
  }
  if (worst == nullptr)
    return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(plan_.silence).count();
  note({worst->rank(), kLost, true, true,
        words_of(*worst) +
            (worst->is_frozen() ? " was stopped where it is (SIGSTOP), and" : " hangs: it") +
            " gave no sign of life for " + std::to_string(seconds) + " s" +
            step_words(worst->heartbeat().last_step())});
}

/// Those that waited for such a process have reported their loss of it.
void RankGroup::note_frozen() {
  for (const RankProcess& process : processes_) {
    if (process.is_frozen()) {
      note({process.rank(), kLost, true, true,
            words_of(process) + " was stopped where it is (SIGSTOP)" +
                step_words(process.heartbeat().last_step())});
    }
  }
}

void RankGroup::note(Failure failure) {
  const bool is_first = !failure_;
  // A survivor may be seen to end before the process that it has lost. All processes end by a
  // mistake in the document, and rank 0 has explained it on the terminal.
  const bool explains_more =
      !is_first && !kill_at_ &&
      ((failure.is_cause && !failure_->is_cause) ||
       (failure.rank == 0 && failure.code == failure_->code && !failure.is_lost));
  if (!is_first && !explains_more)
    return;
  failure_ = std::move(failure);
  last_lines_ = last_lines_of(failure_->rank);
  if (is_first)
    ask_at_ = Clock::now() + plan_.settling;
}

void RankGroup::ask_to_stop() {
  is_stopping_ = true;
  // Its one word for a stop: other signals end a program that has not prepared for them.
  send(SIGTERM);
}

void RankGroup::kill() {
  is_stopping_ = was_stopped_ = true;
  end();
  for (RankProcess& process : processes_)
    process.kill();
  processes_.clear();
}

void RankGroup::end() {
  if (!is_ending())
    ask_at_ = Clock::now() + plan_.settling;
}

void RankGroup::freeze() {
  send(SIGSTOP);
}

void RankGroup::thaw() {
  const auto now = Clock::now();
  send(SIGCONT);
  for (RankProcess& process : processes_) {
    process.heartbeat().listen(now);
    process.heartbeat().forgive(now);
  }
}

void RankGroup::send(int signal) {
  for (const RankProcess& process : processes_)
    process.send(signal);
}

GroupOutcome RankGroup::outcome() const {
  TREADLE_EXPECTS(is_over(), "processes of the group live");
  return outcome_so_far();
}

GroupOutcome RankGroup::outcome_so_far() const {
  GroupOutcome outcome;
  outcome.run = folder_.recorded_run();
  outcome.code = was_stopped_ ? kStopped : 0;
  if (failure_) {
    outcome.code = failure_->code;
    outcome.is_lost = failure_->is_lost;
    outcome.is_cause = failure_->is_cause;
    outcome.message = failure_->message;
    outcome.is_explained = failure_->rank == 0 && !failure_->is_lost;
    outcome.last_lines = last_lines_;
  }
  return outcome;
}

std::string RankGroup::words_of(const RankProcess& process) {
  return "rank " + std::to_string(process.rank()) + " (pid " + std::to_string(process.id()) +
         " on " + host_name() + ")";
}

std::string RankGroup::last_step_words() const {
  return step_words(last_step_);
}

std::string RankGroup::step_words(std::int64_t step) {
  return step < 0 ? "" : ", after step " + std::to_string(step);
}

/// Nothing for rank 0, whose output is on the terminal.
std::string RankGroup::last_lines_of(std::int64_t rank) const {
  std::ifstream file(folder_.output_of(rank), std::ios::binary | std::ios::ate);
  if (!file)
    return {};
  const auto size = static_cast<std::size_t>(file.tellg());
  std::string text(std::min(size, kTailBytes), '\0');
  file.seekg(static_cast<std::streamoff>(size - text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(plain_text(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  std::string tail;
  for (std::size_t i = lines.size() - std::min(lines.size(), kTailLines); i < lines.size(); ++i)
    tail += lines[i] + "\n";
  return tail;
}

}  // namespace treadle::launch
