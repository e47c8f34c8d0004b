#pragma once

#include <mpi.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include <treadle/core/distributed/communicator.h>

namespace treadle::mpi_group {

/// The variables of a process's environment; nothing where there is none of this name.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables environment();

/// Throws where the process was started by the launcher of another MPI than `library`, whose
/// version text that is: each process would be a group of its own.
void expect_own_launcher(const std::string& library, const Variables& variables);

/// MPI itself, which is one for a process: begun by the first communicator, ended with the process.
/// One call at a time, with the lock held: MPI_THREAD_SERIALIZED.
class MpiProcess {
 public:
  /// Begins MPI, unless that was done. Throws CommunicationError where its ranks are others than
  /// the rendezvous has.
  static MpiProcess& begun_for(const Rendezvous& rendezvous);

  std::mutex& mutex() { return mutex_; }
  /// A group has failed: MPI_Finalize would wait for it. The process ends with MPI_Abort, so that
  /// the launcher ends the others.
  void set_broken() { is_broken_ = true; }

 private:
  static MpiProcess& instance();
  static void end();

  std::mutex mutex_;
  bool has_begun_ = false;
  bool is_broken_ = false;
};

/// Throws what an MPI function returned as an error, of `rank` where that is known.
void expect_success(int code, const std::string& call, int rank);

}  // namespace treadle::mpi_group
