#include "mpi_process.h"

#include <cstdlib>
#include <string_view>

#include <treadle/base/error.h>

namespace treadle::mpi_group {
namespace {

constexpr int kExitCode = static_cast<int>(ErrorKind::kCommunication);

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int size = 0;
  MPI_Get_library_version(text, &size);
  const std::string version(text, static_cast<std::size_t>(size));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace

Variables environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

void expect_own_launcher(const std::string& library, const Variables& variables) {
  const bool is_open_mpi = library.starts_with("Open MPI");
  const bool by_open_mpi = variables("OMPI_COMM_WORLD_SIZE").has_value();
  // Hydra, of MPICH, Intel MPI and MVAPICH. Slurm's own PMI has no such descriptor.
  const bool by_hydra = !by_open_mpi && variables("PMI_FD").has_value();
  if ((is_open_mpi && by_hydra) || (!is_open_mpi && by_open_mpi))
    throw CommunicationError("this process was started by the launcher of " +
                             std::string(by_hydra ? "MPICH" : "Open MPI") +
                             ", but the communicator mpi was built with " + library +
                             "; start it with the mpirun of that MPI, or build the plugin with the "
                             "other one");
}

void expect_success(int code, const std::string& call, int rank) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  MPI_Error_string(code, text, &size);
  throw CommunicationError(call + " of " + library_version() +
                               " failed: " + std::string(text, static_cast<std::size_t>(size)) +
                               (rank < 0 ? "" : " (with rank " + std::to_string(rank) + ")") +
                               "; see the errors of the other ranks",
                           rank);
}

MpiProcess& MpiProcess::instance() {
  static MpiProcess process;
  return process;
}

MpiProcess& MpiProcess::begun_for(const Rendezvous& rendezvous) {
  expect_own_launcher(library_version(), environment());
  MpiProcess& process = instance();
  const std::lock_guard lock(process.mutex_);
  int others_began = 0;
  MPI_Initialized(&others_began);
  if (others_began == 0) {
    int provided = MPI_THREAD_SINGLE;
    expect_success(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
                   "MPI_Init_thread", -1);
    process.has_begun_ = true;
    std::atexit(end);
    if (provided < MPI_THREAD_SERIALIZED)
      throw CommunicationError(library_version() +
                               " was built without threads (MPI_THREAD_SERIALIZED); use an MPI "
                               "that has them");
  }
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != rendezvous.rank || size != rendezvous.world_size) {
    process.is_broken_ = process.is_broken_ || size > 1;
    throw CommunicationError(
        "MPI counts this process as rank " + std::to_string(rank) + " of " + std::to_string(size) +
        ", expected rank " + std::to_string(rendezvous.rank) + " of " +
        std::to_string(rendezvous.world_size) +
        "; start all processes with one mpirun or srun, of the MPI that the plugin was built with "
        "(" +
        library_version() + ")");
  }
  return process;
}

void MpiProcess::end() {
  MpiProcess& process = instance();
  int has_ended = 0;
  MPI_Finalized(&has_ended);
  if (has_ended != 0)
    return;
  if (process.is_broken_)
    MPI_Abort(MPI_COMM_WORLD, kExitCode);
  else
    MPI_Finalize();
}

}  // namespace treadle::mpi_group
