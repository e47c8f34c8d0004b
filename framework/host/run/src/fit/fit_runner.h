#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <treadle/engine/fits.h>
#include <treadle/engine/session.h>

#include "context/run_parts.h"
#include "fit/fit_context.h"
#include "fit/fit_lender.h"
#include "fit/fit_memory.h"
#include "fit/fit_planner.h"

namespace treadle::internal {

/// Runs the fits of a plan: each with components, streams, checkpoints and a record of its own.
/// Where processes divide the fits of a run, one runner lends them, and trains none; those of the
/// others, whose planners hand them on, train them.
class FitRunner final : private engine::FitSchedule {
 public:
  /// Borrows all. Expects that the data is open. `memory` is how many bytes the process may use,
  /// where that is less than there are. `lender`: null: this runner trains.
  FitRunner(RunParts& run, FitPlanner& planner, std::optional<std::int64_t> memory = {},
            FitLender* lender = nullptr);
  ~FitRunner() override;

  /// Until the plan ends. Throws like engine::run_fits(); exceptions of a fit name it. Inside
  /// RunParts::budget.
  void run();

  /// Ends one fit alone, whether it runs or will; it saves a checkpoint. Any thread, a planner's
  /// among them.
  void stop(const std::string& fit);
  /// That fit may run again. Any thread.
  void forget_stop(const std::string& fit);
  /// The planner's decision on a fit that is lent, after an epoch. Any thread.
  FitVerdict reported_elsewhere(const std::string& fit, const EpochSummary& epoch);
  /// Does something with the planner while nobody else calls it. Any thread.
  void with_planner(const std::function<void()>& work);
  /// Asks a planner that waits for its next orders, soon. Any thread, but not inside a call of the
  /// planner or of with_planner().
  void wake() { waker_.wake(); }

 private:
  struct Node {
    PlannedFit fit;
    bool is_to_be_noted = false;   // how it begins: of the first of the plan
    nlohmann::json identity = {};  // of its own document; null: it has the run's
    bool has_begun = false;        // in this process
    bool has_failed = false;       // and the planner does without it
    bool has_copied = false;       // the checkpoint that it begins with, before it is lent
    bool is_lent = false;
    std::int64_t epochs_told = 0;  // to the planner
  };
  class Running;

  engine::FitOrders next() override;
  engine::FitEnd run(const std::string& path, const engine::Settled& settled) override;

  /// Whether the fits are those of another process, which has prepared them.
  bool borrows() const { return run_.divides_fits && lender_ == nullptr; }
  /// Whether an earlier process, or another one, may have left files of a fit.
  bool may_have_files() const {
    return run_.resumed || run_.divides_fits || run_.folder.has_shared_trials();
  }

  void add(PlannedFit fit);
  void add_news(engine::FitOrders& orders);
  bool may_be_lent(Node& node);
  void lend(Node& node);
  engine::FitEnd take_back(Node& node, const DocumentComponents& components);
  void copy_checkpoint_of_start(const Node& node);
  void expect_place_in_tree(const FitId& id) const;
  Node& node_of(const std::string& path);
  std::shared_ptr<const DocumentComponents> components_of(const PlannedFit& fit);
  FitVerdict report(Node& node, const EpochSummary& epoch);
  FitVerdict report_again(Node& node, std::int64_t epochs, bool has_finished);
  engine::FitEnd run_or_fail(Node& node, const engine::Settled& settled);
  engine::FitEnd run_node(Node& node, const engine::Settled& settled);
  engine::FitEnd train(Node& node, const DocumentComponents& components, FitContext& context,
                       const engine::Settled& settled);
  engine::TrainingResult train_keeping_what_is_saved(Fit& fit, FitContext& context);
  void complete(Node& node, Fit& fit, FitContext& context, const engine::TrainingResult& training);
  void take_over(const Node& node, const DocumentComponents& components);
  void write_record(const std::string& path, const StateDict& record) const;
  StateDict weights_of(const std::string& path) const;
  void write_model(Fit& fit, const std::filesystem::path& folder) const;
  void write_architecture(const Fit& fit) const;
  void write_kept_model(const PlannedFit& planned, Fit& fit) const;

  /// The record of a fit that an earlier process completed.
  std::optional<StateDict> record_of(const Node& node);
  CompletedFit completed_from(const StateDict& record, const std::string& path,
                              const DocumentComponents& components) const;

  RunParts& run_;
  FitPlanner& planner_;
  FitLender* const lender_;
  std::vector<std::unique_ptr<FitMemory>> memories_;  // of the process, and of a device
  engine::FitWaker waker_;

  std::mutex mutex_;  // guards what follows, and calls of the planner
  std::map<std::string, Node> nodes_;
  std::set<std::pair<std::string, std::int64_t>> places_;  // group and number among its siblings
  std::vector<std::string> waiting_;                       // for a borrower
  std::int64_t lent_ = 0;                                  // and not taken back
  /// Of documents that several fits have, such as the folds of a trial.
  std::map<std::shared_ptr<const ResolvedWorkflow>, std::weak_ptr<const DocumentComponents>>
      components_;

  std::mutex stop_mutex_;  // guards what follows
  std::set<std::string> stopped_;
  std::map<std::string, FitContext*> running_;
};

}  // namespace treadle::internal
