#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/base/system/processors.h>

namespace treadle::engine {

/// The threads a process may use, owned by oneTBB. Everything heavy runs inside run().
///
/// While a budget lives, every thread that works in it has: libtorch intra-op threads and BLAS
/// threads as requested, by default 1, and denormals flushed to zero. **Rationale:** on two cores
/// an OpenMP team of two made one and the same training step 3 to 8 times slower than one thread,
/// because its threads spin; workers that each use one thread made it almost twice as fast.
///
/// Make one, near main(), and keep it until the work is done.
class ThreadBudget {
 public:
  /// `workers` threads, the calling one included; 0 means available_cores(). More than there are
  /// cores is allowed: results do not depend on it. `intra_op_threads`: how many threads one
  /// operator of libtorch may use; results may depend on it.
  explicit ThreadBudget(int workers = 0, int intra_op_threads = 1);
  ~ThreadBudget();
  ThreadBudget(const ThreadBudget&) = delete;
  ThreadBudget& operator=(const ThreadBudget&) = delete;

  int workers() const;

  /// Runs `work` on the calling thread as a member of the budget; flow graphs made inside use its
  /// threads. Rethrows. The first call throws std::system_error when the system has too few
  /// threads.
  void run(const std::function<void()>& work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

using treadle::available_cores;

/// Which BLAS is loaded, for the run's record: "OpenBLAS", "MKL", "BLIS", "reference", or
/// "unknown".
std::string blas_name();

}  // namespace treadle::engine
