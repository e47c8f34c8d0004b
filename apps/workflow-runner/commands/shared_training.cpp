#include "commands/shared_training.h"

#include <filesystem>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>
#include <treadle/base/system/processors.h>
#include <treadle/host/launch/addresses.h>
#include <treadle/host/launch/group_folder.h>
#include <treadle/host/run/pipeline.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using launch::WorkerPlace;

constexpr const char* kAuto = "auto";

std::string component_of(const std::string& choice, const WorkerPlace& place) {
  if (choice != kAuto)
    return choice;
  return place.meeting == WorkerPlace::Meeting::kLauncher ? "mpi" : "gloo";
}

Rendezvous rendezvous_of(const WorkerPlace& place) {
  Rendezvous rendezvous;
  rendezvous.rank = place.rank;
  rendezvous.world_size = place.world_size;
  rendezvous.id = place.group_id();
  rendezvous.is_served = place.is_served;
  rendezvous.token = place.token;
  rendezvous.timeout = place.timeout;
  if (place.meeting == WorkerPlace::Meeting::kFolder)
    rendezvous.folder = place.meeting_folder();
  if (place.meeting == WorkerPlace::Meeting::kAddress) {
    rendezvous.address = place.address;
    rendezvous.own_address =
        launch::own_address_towards(launch::Endpoint::parse(place.address, place.launcher));
  }
  return rendezvous;
}

}  // namespace

/// Tells the supervisor which step this process is at, and of rank 0 where the run is kept. A hang
/// is noticed by the others, whose calls run out of time: an evaluation takes as long as it takes.
class SharedTraining::SignOfLife final : public RunObserver {
 public:
  explicit SignOfLife(const WorkerPlace& place) : place_(place), heartbeat_(place.heartbeat) {}

 private:
  void do_run_started(const std::string&, const std::string& folder) override {
    if (place_.rank == 0 && !place_.group_folder.empty())
      launch::GroupFolder::record_run(place_.group_folder, fs::absolute(folder_to_resume(folder)));
  }
  void do_step_completed(const FitId&, const StepProgress& progress) override {
    heartbeat_.report(progress.step);
  }

  const WorkerPlace& place_;
  launch::Heartbeat heartbeat_;
};

SharedTraining::SharedTraining()
    : place_(WorkerPlace::from(launch::environment_variables())),
      sign_of_life_(std::make_unique<SignOfLife>(place_)) {}

SharedTraining::~SharedTraining() {
  communicator_.reset();
}

std::int64_t SharedTraining::workers() const {
  return place_.workers > 0 ? place_.workers : available_cores();
}

void SharedTraining::expect_alone(const std::string& what) const {
  if (!place_.is_in_group())
    return;
  throw UsageError(what + " is for one process, and " + place_.launcher + " has started " +
                   std::to_string(place_.world_size) + "; start it alone");
}

void SharedTraining::connect(const Runtime& runtime, const ResolvedWorkflow& workflow,
                             RunOptions& options) {
  connect(runtime, workflow.resolved.at("resources").value("communicator", kAuto), options);
}

void SharedTraining::connect(const Runtime& runtime, RunOptions& options) {
  connect(runtime, kAuto, options);
}

void SharedTraining::connect(const Runtime& runtime, const std::string& component,
                             RunOptions& options) {
  options.observers.push_back(sign_of_life_.get());
  options.workers = place_.workers;
  if (!place_.is_in_group())
    return;
  communicator_name_ = component_of(component, place_);
  communicator_ = runtime.registry().make<Communicator>(communicator_name_);
  const Rendezvous rendezvous = rendezvous_of(place_);
  address_ = rendezvous.own_address.empty() ? "127.0.0.1" : rendezvous.own_address;
  communicator_->connect(rendezvous);
  options.communicator = communicator_.get();
  if (is_first_rank())
    return;
  // It keeps a run of its own while it trains.
  private_folder_.emplace(fs::temp_directory_path(), "treadle-rank-");
  options.output = private_folder_->path();
  options.trace.clear();
}

}  // namespace treadle::cli
