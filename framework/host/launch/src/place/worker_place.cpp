#include <treadle/host/launch/worker_place.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/launch/group_folder.h>
#include <treadle/host/launch/group_variables.h>

#include "place/node_list.h"

namespace treadle::launch {
namespace {

constexpr std::int64_t kMostProcesses = 1'000'000;
constexpr std::int64_t kMostThreads = 100'000;
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();

/// Reads the variables of one launcher; each mistake becomes one sentence.
class VariableReader {
 public:
  VariableReader(const Variables& variables, std::string_view launcher)
      : variables_(&variables), launcher_(launcher) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }

  std::string text(std::string_view name, std::string_view fallback = {}) const {
    const std::string* found = find(name);
    return found == nullptr ? std::string(fallback) : *found;
  }

  std::string required(std::string_view name, std::string_view beside) const {
    if (const std::string* found = find(name))
      return *found;
    throw UsageError(std::string(beside) + " is set, but " + std::string(name) +
                     " is not; set all variables of " + std::string(launcher_) +
                     ", or none: unset " + std::string(beside));
  }

  std::int64_t number(std::string_view name, std::int64_t least, std::int64_t most) const {
    const std::string value = text(name);
    std::int64_t parsed = 0;
    const char* end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, parsed);
    if (value.empty() || error != std::errc() || stopped != end || parsed < least ||
        parsed > most) {
      fail(name, "a whole number " + (most == kAnyNumber ? "from " + std::to_string(least)
                                                         : "from " + std::to_string(least) +
                                                               " to " + std::to_string(most)));
    }
    return parsed;
  }

  std::int64_t number_or(std::string_view name, std::int64_t least, std::int64_t most,
                         std::int64_t fallback) const {
    return has(name) ? number(name, least, most) : fallback;
  }

  [[noreturn]] void fail(std::string_view name, const std::string& expected) const {
    throw UsageError("the environment variable " + std::string(name) + " is " +
                     quote_text(text(name)) + ", expected " + expected + "; " +
                     std::string(launcher_) + " sets it: start the process by " +
                     std::string(launcher_) + ", or unset " + std::string(name));
  }

 private:
  /// An empty variable is none, as for most programs.
  const std::string* find(std::string_view name) const {
    const auto found = variables_->find(name);
    return found == variables_->end() || found->second.empty() ? nullptr : &found->second;
  }

  const Variables* variables_;
  std::string_view launcher_;
};

/// Never set: a launcher has no such variable.
constexpr std::string_view kNone = {};

/// Where a launcher writes what all launchers write, and a function for the rest.
struct LauncherVariables {
  std::string_view name;
  std::string_view rank;
  std::string_view world_size;
  std::string_view step_size;  ///< where set, in the place of world_size: a part of its processes
  std::string_view local_rank;
  std::string_view local_size;
  std::string_view generation;
  /// Whether this process was started as one of a group, although the two variables may be set.
  bool (*applies)(const VariableReader& reader);
  /// The meeting and the id of the group; the numbers are read.
  void (*complete)(const VariableReader& reader, WorkerPlace& place);
  /// Whether this launcher may have started another launcher, which started this process.
  bool (*may_be_outer)(const VariableReader& reader, const WorkerPlace& place);
};

bool applies_always(const VariableReader&) {
  return true;
}

bool is_never_outer(const VariableReader&, const WorkerPlace&) {
  return false;
}

void complete_own(const VariableReader& reader, WorkerPlace& place) {
  place.job_id = reader.required(variable::kJobId, variable::kRank);
  place.token = reader.text(variable::kToken);
  place.group_folder = reader.text(variable::kGroupFolder);
  place.address = reader.text(variable::kAddress);
  place.heartbeat = static_cast<int>(reader.number_or(variable::kHeartbeat, 0, kMostThreads, -1));
  if (!place.is_in_group())
    return;
  if (place.address.empty())
    reader.required(variable::kGroupFolder, variable::kRank);
  place.meeting =
      place.address.empty() ? WorkerPlace::Meeting::kFolder : WorkerPlace::Meeting::kAddress;
}

/// Python's words for a truth value.
bool is_true(const VariableReader& reader, std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, bool>, 6> kWords{{{"True", true},
                                                                            {"true", true},
                                                                            {"1", true},
                                                                            {"False", false},
                                                                            {"false", false},
                                                                            {"0", false}}};
  if (!reader.has(name))
    return false;
  const std::string value = reader.text(name);
  const auto* const found = std::find_if(kWords.begin(), kWords.end(),
                                         [&](const auto& word) { return word.first == value; });
  if (found == kWords.end())
    reader.fail(name, "True or False");
  return found->second;
}

void meet_at_master(const VariableReader& reader, WorkerPlace& place, std::string_view beside) {
  const std::string host = reader.required("MASTER_ADDR", beside);
  reader.required("MASTER_PORT", beside);
  const std::int64_t port = reader.number("MASTER_PORT", 1, 65535);
  place.meeting = WorkerPlace::Meeting::kAddress;
  place.address = host + ":" + std::to_string(port);
}

/// Launchers of MPI give no address: that is for users who want another communicator than MPI.
void meet_by_launcher(const VariableReader& reader, WorkerPlace& place) {
  place.meeting = WorkerPlace::Meeting::kLauncher;
  if (reader.has("MASTER_ADDR"))
    meet_at_master(reader, place, "MASTER_ADDR");
}

void complete_torchrun(const VariableReader& reader, WorkerPlace& place) {
  if (!place.is_in_group())
    return;
  meet_at_master(reader, place, "RANK");
  place.is_served = is_true(reader, "TORCHELASTIC_USE_AGENT_STORE");
  place.job_id = "torchrun-" + reader.text("TORCHELASTIC_RUN_ID", place.address);
}

void complete_open_mpi(const VariableReader& reader, WorkerPlace& place) {
  if (reader.number_or("PMIX_RANK", 0, kMostProcesses, place.rank) != place.rank)
    reader.fail("PMIX_RANK", std::to_string(place.rank) + ", as OMPI_COMM_WORLD_RANK is");
  if (!place.is_in_group())
    return;
  meet_by_launcher(reader, place);
  place.job_id = "mpirun-" + reader.text("PMIX_NAMESPACE", "job");
}

void complete_mpich(const VariableReader& reader, WorkerPlace& place) {
  if (!place.is_in_group())
    return;
  meet_by_launcher(reader, place);
  place.job_id = "mpiexec-" + reader.text("PMI_JOBID", "job");
}

/// A batch script and an interactive shell have the variables of their job, but no step, or one
/// with a number that no srun of the user's has.
bool is_slurm_step(const VariableReader& reader) {
  constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;
  return reader.has("SLURM_STEP_ID") &&
         reader.number("SLURM_STEP_ID", 0, kAnyNumber) < kFirstSpecialStep;
}

void complete_slurm(const VariableReader& reader, WorkerPlace& place) {
  if (!place.is_in_group())
    return;
  reader.required("SLURM_JOB_ID", "SLURM_PROCID");
  const std::int64_t job = reader.number("SLURM_JOB_ID", 0, 0xffffffff);
  const std::int64_t step = reader.number("SLURM_STEP_ID", 0, 0xffffffff);
  reader.required("SLURM_STEP_NODELIST", "SLURM_PROCID");
  const std::string host = first_host(reader.text("SLURM_STEP_NODELIST"));
  if (host.empty())
    reader.fail("SLURM_STEP_NODELIST", "a list of hosts such as node[01-03,07],gpu5");
  // Slurm gives no port. Below those that Linux hands out by itself, from 32768 on; steps of a job
  // and most jobs have different ones.
  constexpr std::int64_t kFirstPort = 15000;
  constexpr std::int64_t kPorts = 16000;
  constexpr std::int64_t kSpread = 7919;
  place.meeting = WorkerPlace::Meeting::kAddress;
  place.address = host + ":" + std::to_string(kFirstPort + (job * kSpread + step) % kPorts);
  place.job_id = "slurm-" + std::to_string(job) + "." + std::to_string(step);
}

/// With one task on each node, which is how srun starts torchrun, and mpirun its daemons.
bool is_slurm_outer(const VariableReader& reader, const WorkerPlace& place) {
  return place.local_rank == 0 &&
         reader.number_or("SLURM_STEP_NUM_NODES", 1, kMostProcesses, 0) == place.world_size;
}

constexpr std::array<LauncherVariables, 5> kLaunchers{{
    {"workflow-runner launch", variable::kRank, variable::kWorldSize, kNone, variable::kLocalRank,
     variable::kLocalWorldSize, variable::kGeneration, applies_always, complete_own,
     is_never_outer},
    {"torchrun", "RANK", "WORLD_SIZE", kNone, "LOCAL_RANK", "LOCAL_WORLD_SIZE",
     "TORCHELASTIC_RESTART_COUNT", applies_always, complete_torchrun, is_never_outer},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", kNone, "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", kNone, applies_always, complete_open_mpi, is_never_outer},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", kNone,
     "SLURM_RESTART_COUNT", is_slurm_step, complete_slurm, is_slurm_outer},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", kNone, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", kNone,
     applies_always, complete_mpich, is_never_outer},
}};

/// The place that one launcher gives.
struct Claim {
  WorkerPlace place;
  std::string_view rank;
  std::string_view world_size;
  bool may_be_outer = false;
};

std::optional<Claim> claim_of(const LauncherVariables& launcher, const Variables& variables) {
  const VariableReader reader(variables, launcher.name);
  const std::string_view world_size =
      reader.has(launcher.step_size) ? launcher.step_size : launcher.world_size;
  if (!reader.has(launcher.rank) && !reader.has(world_size))
    return std::nullopt;
  if (!launcher.applies(reader))
    return std::nullopt;
  reader.required(launcher.rank, world_size);
  reader.required(world_size, launcher.rank);
  WorkerPlace place;
  place.launcher = launcher.name;
  place.world_size = reader.number(world_size, 1, kMostProcesses);
  place.rank = reader.number(launcher.rank, 0, kMostProcesses);
  if (place.rank >= place.world_size) {
    reader.fail(launcher.rank, "a rank below " + std::string(world_size) + ", which is " +
                                   std::to_string(place.world_size));
  }
  place.local_size = reader.number_or(launcher.local_size, 1, place.world_size, 0);
  place.local_rank = reader.number_or(
      launcher.local_rank, 0, (place.local_size > 0 ? place.local_size : place.world_size) - 1, 0);
  place.generation = reader.number_or(launcher.generation, 0, kAnyNumber, 0);
  launcher.complete(reader, place);
  const bool may_be_outer = launcher.may_be_outer(reader, place);
  return Claim{std::move(place), launcher.rank, world_size, may_be_outer};
}

std::string words_of(const Claim& claim) {
  return claim.place.launcher + " (" + std::string(claim.rank) + "=" +
         std::to_string(claim.place.rank) + ", " + std::string(claim.world_size) + "=" +
         std::to_string(claim.place.world_size) + ")";
}

void expect_agreement(const Claim& first, const Claim& other) {
  if (other.may_be_outer ||
      (first.place.rank == other.place.rank && first.place.world_size == other.place.world_size))
    return;
  throw UsageError("two launchers place this process differently: " + words_of(first) + " and " +
                   words_of(other) + "; start it by one of them, or hide the other one: env -u " +
                   std::string(other.rank) + " -u " + std::string(other.world_size) +
                   " workflow-runner …");
}

}  // namespace

Variables environment_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::filesystem::path WorkerPlace::meeting_folder() const {
  return meeting == Meeting::kFolder ? GroupFolder::meeting_in(group_folder)
                                     : std::filesystem::path();
}

WorkerPlace WorkerPlace::from(const Variables& variables) {
  std::vector<Claim> claims;
  for (const LauncherVariables& launcher : kLaunchers) {
    // One task of srun is a process by itself: no launcher to contradict another one.
    std::optional<Claim> claim = claim_of(launcher, variables);
    if (claim && (claim->place.is_in_group() || !claim->place.group_folder.empty()))
      claims.push_back(std::move(*claim));
  }
  for (std::size_t i = 1; i < claims.size(); ++i)
    expect_agreement(claims.front(), claims[i]);
  WorkerPlace place = claims.empty() ? WorkerPlace() : std::move(claims.front().place);
  const VariableReader reader(variables, "workflow-runner launch");
  place.workers = static_cast<int>(reader.number_or(variable::kWorkers, 1, kMostThreads, 0));
  place.timeout = std::chrono::milliseconds(reader.number_or(
      variable::kTimeout, 1, std::numeric_limits<int>::max(), place.timeout.count()));
  return place;
}

}  // namespace treadle::launch
