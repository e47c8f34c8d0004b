#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace treadle::launch {

/// Environment variables by name.
using Variables = std::map<std::string, std::string, std::less<>>;

/// Those of this process.
Variables environment_variables();

/// The place of a process in a group that trains together: its rank, the size of the group, and
/// where the processes meet. A launcher sets it in environment variables:
///
///     workflow-runner launch   TREADLE_RANK, TREADLE_WORLD_SIZE … (group_variables.h)
///     torchrun, Kubernetes     RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT …
///     mpirun of Open MPI       OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE …
///     srun                     SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_ID …
///     mpiexec of MPICH         PMI_RANK, PMI_SIZE
///
/// Those of MPI give no address; the user may set MASTER_ADDR and MASTER_PORT beside theirs.
///
/// The first launcher of this list whose variables are set decides, alone. A value without state;
/// it may be read from any thread.
struct WorkerPlace {
  enum class Meeting {
    kNone,      ///< a process alone
    kFolder,    ///< in `meeting_folder()`: all are on one host
    kAddress,   ///< at `address`
    kLauncher,  ///< by the launcher's own library: MPI alone
  };

  /// Reads it. Throws UsageError, with variable, value, expectation and remedy, for a value that is
  /// no number or out of range, a variable that is missing beside others of its launcher, and two
  /// launchers that contradict each other.
  static WorkerPlace from(const Variables& variables);

  /// Whether other processes belong to the group.
  bool is_in_group() const { return world_size > 1; }
  /// Tells the group from all others, the earlier generations of the same job included.
  std::string group_id() const { return job_id + "." + std::to_string(generation); }
  /// Exists, is empty when the group starts, and is for the communicator alone. Empty: see
  /// `meeting`.
  std::filesystem::path meeting_folder() const;

  std::string launcher = {};  ///< for messages: "torchrun"; empty: none
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t local_rank = 0;  ///< on this host; 0 where the launcher does not set it
  std::int64_t local_size = 0;  ///< processes on this host; 0: unknown
  std::string job_id = {};
  std::int64_t generation = 0;  ///< how often the group was restarted
  Meeting meeting = Meeting::kNone;
  std::string address = {};  ///< of the server: "node-1:29500"; kAddress alone
  bool is_served = false;    ///< by another program (torchrun's agent); else by rank 0
  std::string token = {};    ///< which every process of the group has; empty: none
  std::filesystem::path group_folder = {};    ///< `launch` alone
  int heartbeat = -1;                         ///< descriptor for class Heartbeat; -1: none
  int workers = 0;                            ///< threads for this process; 0: no recommendation
  std::chrono::milliseconds timeout{60'000};  ///< of each call of a communicator
};

}  // namespace treadle::launch
