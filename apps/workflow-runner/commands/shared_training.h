#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <treadle/core/distributed/communicator.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/host/launch/heartbeat.h>
#include <treadle/host/launch/locked_folder.h>
#include <treadle/host/launch/worker_place.h>
#include <treadle/host/run/workflow_run.h>

namespace treadle::cli {

/// This process among those that train a run together, where a launcher has started several: its
/// place, its connection to them, and its sign of life. Otherwise it is alone, and all of this does
/// nothing. One for each command, made by the main thread.
class SharedTraining {
 public:
  /// Reads the variables of the launcher. Throws as WorkerPlace::from().
  SharedTraining();
  ~SharedTraining();
  SharedTraining(const SharedTraining&) = delete;
  SharedTraining& operator=(const SharedTraining&) = delete;

  bool is_first_rank() const { return place_.rank == 0; }
  /// The component that connects the processes; empty: this process is alone, or connect() follows.
  const std::string& communicator_name() const { return communicator_name_; }
  /// By which other processes reach this one; empty until connect().
  const std::string& address() const { return address_; }
  /// Threads for this process, where a document leaves their number open.
  std::int64_t workers() const;
  /// Throws UsageError where there are several processes, and `what` cannot be done by them.
  void expect_alone(const std::string& what) const;
  /// Meets the others, with the communicator that the document names; "auto" is "mpi" where the
  /// launcher gives no place to meet but its own, else "gloo". Completes the options of the run.
  /// Throws CommunicationError.
  void connect(const Runtime& runtime, const ResolvedWorkflow& workflow, RunOptions& options);
  /// The same for a run that goes on, whose document the others may not have: by "auto".
  void connect(const Runtime& runtime, RunOptions& options);

 private:
  class SignOfLife;

  void connect(const Runtime& runtime, const std::string& component, RunOptions& options);

  const launch::WorkerPlace place_;
  std::unique_ptr<SignOfLife> sign_of_life_;
  std::string communicator_name_;
  std::string address_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<launch::LockedFolder> private_folder_;  // of another rank than 0
};

}  // namespace treadle::cli
