#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <treadle/core/history/timeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/run_options.h>

#include "components/document_components.h"
#include "context/run_conditions.h"
#include "data/dataset.h"
#include "events/run_log.h"
#include "store/background_writer.h"

namespace treadle::internal {

/// What all fits of a run share: its folder, its log, its threads, and its data once that is open.
class RunParts {
 public:
  RunParts(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
           RunFolder folder, bool resumed);

  /// Opens the data, completes the document and writes the conditions of the run into its folder. A
  /// resumed run under other conditions is refused. `find_batch_size` is called where the document
  /// leaves the batch size open, with the validation plan made.
  void open_data(const std::function<void(DocumentComponents&)>& find_batch_size);

  /// The document; once the data is open, with what it left open.
  const ResolvedWorkflow& workflow() const;
  // Expect open_data().
  const Dataset& dataset() const { return *dataset_; }
  const DocumentComponents& components() const { return *components_; }
  DocumentComponents& components() { return *components_; }
  const RunConditions& conditions() const { return conditions_; }
  /// The communicator of processes that share the steps of each fit. Null: this process makes
  /// whole steps.
  Communicator* shared_steps() const { return divides_fits ? nullptr : options.communicator; }
  /// How many trainings run at once at most, in all processes.
  int trainings_at_once() const {
    return budget.workers() *
           (divides_fits ? static_cast<int>(options.communicator->world_size()) : 1);
  }
  /// Requested by the user, or by another process with which this one divides fits.
  std::stop_token stop() const { return stop_.get_token(); }
  void request_stop() { stop_.request_stop(); }
  /// For whatever is no training step. Processes that share steps stop at steps alone, all at the
  /// same one: others would wait for one that stops elsewhere.
  std::stop_token stop_between_steps() const {
    return shared_steps() != nullptr ? std::stop_token() : stop();
  }

  const Runtime& runtime;
  const RunOptions& options;
  RunFolder folder;
  const bool resumed;
  engine::ThreadBudget budget;
  Timeline timeline;
  RunLog log;
  BackgroundWriter writer;
  std::atomic<bool> has_trained = false;  ///< a step was made
  bool divides_fits = false;              ///< with other processes, each of which makes whole steps
  /// Of the processes that train together, by rank, from open_data() on; empty: one process.
  std::vector<std::string> hosts;

 private:
  ResolvedWorkflow workflow_;
  std::optional<Dataset> dataset_;
  std::optional<DocumentComponents> components_;
  RunConditions conditions_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> user_stop_{options.stop, [this] { request_stop(); }};
};

/// Adds to what could not be written how the run is finished once that is mended.
template <typename Work>
void saying_how_to_go_on(const RunFolder& folder, Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const StorageError& error) {
    throw StorageError(std::string(error.what()) +
                       "; when this is mended: workflow-runner resume " + folder.path().string());
  }
}

}  // namespace treadle::internal
