#include "fit/fit_runner.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/hash.h>
#include <treadle/base/version.h>
#include <treadle/core/components/module_state.h>
#include <treadle/engine/available_memory.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/host/record/history_file.h>
#include <treadle/host/run/state_folder.h>
#include <treadle/tensor/safetensors.h>

#include "components/document_metrics.h"
#include "events/event_log.h"
#include "fit/baselines.h"
#include "fit/derived_network.h"
#include "fit/fit_record.h"
#include "model/saved_model.h"
#include "outputs/output_stages.h"
#include "result/fit_results.h"
#include "runtime/run_record.h"

// Between the planner, which decides what is trained, and the scheduler of engine, which decides
// when: the life of each fit.
//
// Life of a fit: planned (next()) -> run() -> completed, paused or stopped; a paused one is run
// again. run() first restores what exists. A record of an earlier process means that the fit has
// completed (result_from()). A checkpoint, of an earlier process or of this one before a pause,
// means that it goes on from there. Before training goes on, the planner receives the epochs of the
// history that it has not received yet, and its answers count: it has no saved state and must get
// to where it was.
//
// Order of writes at the end (complete()): the weights, the preprocessing with the hash of the
// weights, the record, the event, and last the planner. The record is what marks a fit as
// completed, so everything that must exist with it is written before. After a kill in between, the
// fit goes on from its last checkpoint, trains nothing more and writes the same files again.
//
// Threads. Several fits run at once, each by one thread. `mutex_` guards the tables and serializes
// the calls of the planner. A Node stays at its address (std::map) and is used without the mutex by
// the thread that runs its fit. `stop_mutex_` is a second mutex because a planner may call stop()
// while it is being called.

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// The part of a fit's record with the weights it ended with.
constexpr const char* kWeights = "model";

/// Whether what fits predict is needed once they have ended.
bool keeps_predictions(const ResolvedWorkflow& workflow) {
  return workflow.resolved.contains("search") &&
         workflow.resolved.at("search").contains("ensemble");
}

/// Those that the fit `path` ended with, of its record.
const StateDict& weights_in(const StateDict& record, const std::string& path) {
  TREADLE_EXPECTS(record.has_part(kWeights), "a fit starts from the weights of " + path +
                                                 ", which was planned without keeps_weights");
  return record.part(kWeights);
}

engine::FitEnd end_of(FitVerdict verdict) {
  return verdict == FitVerdict::kPause ? engine::FitEnd::kPaused : engine::FitEnd::kStopped;
}

}  // namespace

/// A fit can be stopped by name for as long as this lives.
class FitRunner::Running {
 public:
  Running(FitRunner& runner, const std::string& path, FitContext& context)
      : runner_(runner), path_(path) {
    // Registered first, then compared with earlier stops, under one lock: a stop before, during or
    // after this is never lost.
    const std::lock_guard lock(runner_.stop_mutex_);
    runner_.running_[path_] = &context;
    if (runner_.stopped_.count(path_) > 0)
      context.stop();
  }
  // Under the lock of stop(): afterwards nobody has a pointer to the context.
  ~Running() {
    const std::lock_guard lock(runner_.stop_mutex_);
    runner_.running_.erase(path_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  FitRunner& runner_;
  const std::string path_;
};

namespace {

/// A process keeps freed memory: its present size is its peak.
MemoryGauge memory_of_process(const RunOptions& options, std::optional<std::int64_t> limit) {
  std::function<std::optional<std::int64_t>()> available = options.available_memory;
  if (!available)
    available = [] { return engine::available_memory_bytes(); };
  if (limit) {
    available = [available, limit]() -> std::optional<std::int64_t> {
      const std::int64_t left = *limit - resident_memory_bytes();
      return std::min(left, available().value_or(left));
    };
  }
  return {.in_use = resident_memory_bytes, .peak = resident_memory_bytes, .available = available};
}

MemoryGauge memory_of(const RunDevice& device) {
  const auto now = [&device] { return device.backend->memory(device.device()); };
  return {.in_use = [now] { return now().in_use; },
          .peak = [now] { return now().peak; },
          .available = [now]() -> std::optional<std::int64_t> {
            const std::int64_t available = now().available;
            return available > 0 ? std::optional(available) : std::nullopt;
          },
          .name = "memory of " + device.name};
}

}  // namespace

FitLender::~FitLender() = default;

FitRunner::FitRunner(RunParts& run, FitPlanner& planner, std::optional<std::int64_t> memory,
                     FitLender* lender)
    : run_(run), planner_(planner), lender_(lender) {
  const FitMemory::Note note = [&run](const std::string& text) {
    try {
      run.log.note(text);
    } catch (const StorageError&) {
      // Called by the scheduler, which expects no failure; the next event reports it.
    }
  };
  memories_.push_back(std::make_unique<FitMemory>(memory_of_process(run.options, memory), note));
  if (const RunDevice& device = run.components().device(); !device.device().is_cpu())
    memories_.push_back(std::make_unique<FitMemory>(memory_of(device), note));
  if (lender_ != nullptr)
    lender_->serve(this);
}

FitRunner::~FitRunner() {
  if (lender_ != nullptr)
    lender_->serve(nullptr);
}

void FitRunner::run() {
  const auto there_is_memory = [this] {
    return lender_ != nullptr || std::all_of(memories_.begin(), memories_.end(),
                                             [](const auto& memory) { return memory->fits(); });
  };
  // Processes that share steps all do one training after the other; whoever lends trains none.
  const bool is_one = run_.shared_steps() != nullptr || lender_ != nullptr;
  const int at_once = is_one ? 1 : run_.budget.workers();
  engine::run_fits(*this, {static_cast<std::size_t>(at_once), there_is_memory}, &waker_);
}

void FitRunner::stop(const std::string& fit) {
  if (lender_ != nullptr)
    lender_->stop(fit);
  const std::lock_guard lock(stop_mutex_);
  // Remembered for fits that have not begun yet, or are paused.
  stopped_.insert(fit);
  if (const auto running = running_.find(fit); running != running_.end())
    running->second->stop();
}

void FitRunner::forget_stop(const std::string& fit) {
  const std::lock_guard lock(stop_mutex_);
  stopped_.erase(fit);
}

FitVerdict FitRunner::reported_elsewhere(const std::string& fit, const EpochSummary& epoch) {
  return report(node_of(fit), epoch);
}

void FitRunner::with_planner(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  work();
}

engine::FitOrders FitRunner::next() {
  const std::lock_guard lock(mutex_);
  FitPlanner::Orders wanted = planner_.next();
  engine::FitOrders orders;
  orders.waits = wanted.waits;
  if (lender_ != nullptr)
    add_news(orders);
  if (orders.waits && run_.stop_between_steps().stop_requested())
    throw Interrupted("stopped while it waited for trainings elsewhere");
  for (PlannedFit& fit : wanted.start) {
    engine::FitJob job{fit.id.path(), fit.depends_on};
    if (borrows()) {  // whoever lends has seen to what follows
      add(std::move(fit));
      orders.start.push_back(std::move(job));
      continue;
    }
    // One that an earlier process has left paused is no fit of this one: nobody else orders the
    // copy before it goes on, so it is made now. Where several processes work on the fits, the
    // planner sees to it, and whoever trains the new one copies.
    const bool copies = fit.start && fit.start->from == WarmStart::From::kCheckpoint;
    const bool is_known = copies && nodes_.count(fit.start->fit) > 0;
    const bool copies_now = copies && !is_known && !run_.folder.has_shared_trials();
    if (is_known)
      job.copies = fit.start->fit;
    // A checkpoint can be copied from a fit that is paused or still to go on; weights are those
    // that the other fit ended with, so it must have completed.
    if (fit.start && fit.start->from == WarmStart::From::kWeights)
      job.depends_on.push_back(fit.start->fit);
    add(std::move(fit));
    if (copies_now)
      copy_checkpoint_of_start(nodes_.at(job.path));
    orders.start.push_back(std::move(job));
  }
  orders.resume.insert(orders.resume.end(), wanted.resume.begin(), wanted.resume.end());
  return orders;
}

/// Fits that have come back, or wait for a borrower, to the scheduler are paused ones.
void FitRunner::add_news(engine::FitOrders& orders) {
  FitLender::News news = lender_->news();
  orders.resume = std::move(news.returned);
  if (news.has_more_room) {
    orders.resume.insert(orders.resume.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  orders.waits = orders.waits || lent_ > 0 || !waiting_.empty();
}

void FitRunner::copy_checkpoint_of_start(const Node& node) {
  const ResolvedWorkflow& workflow = node.fit.workflow ? *node.fit.workflow : run_.workflow();
  FitContext context(run_, node.fit.id, node.identity, nullptr);
  context.load_checkpoint();
  if (!context.has_checkpoint())
    context.copy_checkpoint(node.fit.start->fit,
                            training_plan_of(run_.runtime, workflow).keep_checkpoints);
}

void FitRunner::add(PlannedFit fit) {
  const std::string path = fit.id.path();
  TREADLE_EXPECTS(fit.rows != nullptr && !fit.rows->training.empty(),
                  "the fit " + path + " was planned without rows to train on");
  expect_place_in_tree(fit.id);
  places_.emplace(fit.id.group(), fit.id.index());
  Node node{std::move(fit)};
  // Of several fits only the first planned one notes how it began; the others would repeat it.
  node.is_to_be_noted = nodes_.empty() && run_.options.is_first_rank();
  if (node.fit.workflow) {
    Dataset::expect_same(run_.workflow(), *node.fit.workflow);
    node.identity = document_identity(run_.runtime.registry(), node.fit.workflow->resolved);
  }
  nodes_.emplace(path, std::move(node));
}

/// Fits have folders by their paths and random streams by their numbers.
void FitRunner::expect_place_in_tree(const FitId& id) const {
  const std::string& path = id.path();
  const auto below = nodes_.lower_bound(path + "/");
  TREADLE_EXPECTS(below == nodes_.end() || !below->first.starts_with(path + "/"),
                  "the fit " + path + " cannot be planned: " + below->first +
                      " is below it, so it is a group of fits");
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    TREADLE_EXPECTS(nodes_.count(path.substr(0, end)) == 0,
                    "the fit " + path + " cannot be planned: " + path.substr(0, end) +
                        " is a fit, and no group of fits");
  }
  TREADLE_EXPECTS(places_.count({id.group(), id.index()}) == 0,
                  "the fit " + path + " cannot be planned: another one beside it has its number, " +
                      std::to_string(id.index()) + ", and so its random streams");
}

FitRunner::Node& FitRunner::node_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return nodes_.at(path);
}

std::shared_ptr<const DocumentComponents> FitRunner::components_of(const PlannedFit& fit) {
  if (!fit.workflow)  // the run's, which outlives every fit
    return {std::shared_ptr<void>(), &run_.components()};
  {
    const std::lock_guard lock(mutex_);
    // Weak: components live as long as a fit that uses them. A search with many documents would
    // keep those of all its trials otherwise.
    std::erase_if(components_, [](const auto& known) { return known.second.expired(); });
    if (const auto known = components_.find(fit.workflow); known != components_.end()) {
      if (std::shared_ptr<const DocumentComponents> components = known->second.lock())
        return components;
    }
  }
  // Without the mutex, as it loads plugins and may build a model. Two fits of one document may both
  // get here; each then has components of its own, which are equal.
  auto components = std::make_shared<const DocumentComponents>(
      run_.runtime, *fit.workflow, run_.dataset(), keeps_predictions(run_.workflow()));
  const std::lock_guard lock(mutex_);
  components_[fit.workflow] = components;
  return components;
}

FitVerdict FitRunner::report(Node& node, const EpochSummary& epoch) {
  std::unique_lock lock(mutex_);
  node.epochs_told = epoch.epoch;
  // An answer of another process comes on a thread that wakes this runner, which must not wait.
  if (borrows())
    lock.unlock();
  // In the form of history.csv, whose names may differ from the metrics' own: a resumed run has
  // only the file, and the planner must get the same numbers by the same names.
  return planner_.reported(node.fit.id, as_in_history(epoch));
}

/// Tells the planner of epochs that an earlier process has trained, as far as it has not heard of
/// them; up to the one after which it wants a pause or an end.
FitVerdict FitRunner::report_again(Node& node, std::int64_t epochs, bool has_finished) {
  std::vector<EpochSummary> history = run_.log.epochs_of(node.fit.id.path());
  std::erase_if(history, [&](const EpochSummary& epoch) { return epoch.epoch > epochs; });
  for (const EpochSummary& epoch : history) {
    // As in FitContext: after the last epoch that the document plans, the planner is not asked.
    if (epoch.epoch <= node.epochs_told || epoch.epoch == epoch.epochs)
      continue;
    const FitVerdict verdict = report(node, epoch);
    // A fit that ended by itself with this epoch, such as by early stopping, has completed,
    // whatever the planner answers. The same holds without a restart: see
    // FitContext::do_save_checkpoint().
    const bool is_end = has_finished && epoch.epoch == history.back().epoch;
    if (verdict != FitVerdict::kContinue && !is_end)
      return verdict;
  }
  return FitVerdict::kContinue;
}

engine::FitEnd FitRunner::run(const std::string& path, const engine::Settled& settled) {
  Node& node = node_of(path);
  if (run_.stop_between_steps().stop_requested())
    throw Interrupted("stopped before " + path + " began");
  if (lender_ != nullptr && !node.is_lent && !may_be_lent(node))
    return engine::FitEnd::kPaused;
  if (!node.is_lent) {
    const std::lock_guard lock(mutex_);
    if (!planner_.begins(node.fit.id))
      return engine::FitEnd::kPaused;
  }
  // The scheduler starts no other fit before this one calls settled(), so the growth of the process
  // in between is this fit's. A fit that begins with a copy says by settled() that it has it.
  const bool settles_at_once =
      !node.fit.start && std::all_of(memories_.begin(), memories_.end(),
                                     [](const auto& memory) { return memory->is_plenty(); });
  std::vector<std::int64_t> before;
  for (const auto& memory : memories_)
    before.push_back(memory->begin());
  if (settles_at_once)
    settled();
  const engine::FitEnd end = run_or_fail(node, [&] {
    for (std::size_t i = 0; i < memories_.size(); ++i)
      memories_[i]->settle(before[i]);
    if (!settles_at_once)
      settled();
  });
  const std::lock_guard lock(mutex_);
  if (node.is_lent)  // and comes back
    return engine::FitEnd::kPaused;
  if (end == engine::FitEnd::kPaused) {
    planner_.paused(node.fit.id);
  } else if (end == engine::FitEnd::kStopped && !node.has_failed) {
    planner_.stopped(node.fit.id);
  }
  if (end != engine::FitEnd::kPaused) {  // only its name is needed any more
    node.fit.rows.reset();
    node.fit.workflow.reset();
    node.identity = nullptr;  // a document for each trial of a search
  }
  return end;
}

/// A training whose planner does without it ends as one that was stopped.
engine::FitEnd FitRunner::run_or_fail(Node& node, const engine::Settled& settled) {
  const auto goes_on = [&](const Error& error) {
    const std::lock_guard lock(mutex_);
    node.has_failed = planner_.failed(node.fit.id, error);
    return node.has_failed;
  };
  try {
    return run_node(node, settled);
  } catch (const TrainingError& error) {
    if (!goes_on(error))
      throw;
  } catch (const DataError& error) {
    if (!goes_on(error))
      throw;
  } catch (const DocumentError& error) {
    if (!goes_on(error))
      throw;
  }
  return engine::FitEnd::kStopped;
}

engine::FitEnd FitRunner::run_node(Node& node, const engine::Settled& settled) {
  const std::shared_ptr<const DocumentComponents> components = components_of(node.fit);
  if (node.is_lent)
    return take_back(node, *components);
  // Completed by an earlier process. Its planner may have wanted a pause on the way; asked again,
  // it gives the same answers.
  if (const std::optional<StateDict> record = record_of(node)) {
    const FitVerdict verdict = report_again(node, std::numeric_limits<std::int64_t>::max(), true);
    if (verdict != FitVerdict::kContinue)
      return end_of(verdict);
    CompletedFit result = completed_from(*record, node.fit.id.path(), *components);
    const std::lock_guard lock(mutex_);
    planner_.completed(node.fit.id, std::move(result));
    return engine::FitEnd::kCompleted;
  }
  if (node.fit.start && node.fit.start->from == WarmStart::From::kModel) {
    return within_memory_of(components->device(), [&] {
      take_over(node, *components);
      return engine::FitEnd::kCompleted;
    });
  }
  FitContext context(run_, node.fit.id, node.identity,
                     [&](const EpochSummary& epoch) { return report(node, epoch); });
  // After the context, and so gone before it: stop() never meets a context that is being destroyed.
  const Running running(*this, node.fit.id.path(), context);
  if (may_have_files() || node.has_begun)
    context.load_checkpoint();
  node.has_begun = true;
  // Once. A fit that goes on has its own checkpoint by now.
  if (!context.has_checkpoint() && node.fit.start &&
      node.fit.start->from == WarmStart::From::kCheckpoint) {
    context.copy_checkpoint(node.fit.start->fit, components->training_plan().keep_checkpoints);
  }
  if (context.has_checkpoint()) {
    const engine::TrainingPosition& position = context.position();
    const FitVerdict verdict = report_again(node, position.epochs_done, position.finished);
    if (verdict != FitVerdict::kContinue)
      return end_of(verdict);
  }
  // Stopped alone before its first step. A stop of the run is thrown from the training instead,
  // which saves first.
  if (context.is_stopped() && !run_.stop().stop_requested())
    return engine::FitEnd::kStopped;
  if (lender_ != nullptr) {
    lend(node);
    return engine::FitEnd::kPaused;
  }
  return within_memory_of(components->device(),
                          [&] { return train(node, *components, context, settled); });
}

/// Whether a borrower is free. Otherwise the fit waits for one.
bool FitRunner::may_be_lent(Node& node) {
  const bool copies = node.fit.start && node.fit.start->from == WarmStart::From::kCheckpoint;
  if (copies && !std::exchange(node.has_copied, true)) {
    // Now: the other fit may go on as soon as this one has left its slot.
    try {
      copy_checkpoint_of_start(node);
    } catch (const TrainingError&) {
      // Tried again as part of the fit, whose failure it is.
    }
  }
  if (lender_->has_room(node.fit))
    return true;
  const std::lock_guard lock(mutex_);
  waiting_.push_back(node.fit.id.path());
  return false;
}

void FitRunner::lend(Node& node) {
  FitLender::Loan loan{node.fit, node.epochs_told};
  {
    const std::lock_guard lock(mutex_);
    if (node.fit.epochs) {
      FitRows rows = *node.fit.rows;
      rows.fixed_epochs = std::exchange(loan.fit.epochs, nullptr)();
      loan.fit.rows = std::make_shared<const FitRows>(std::move(rows));
    }
    node.is_lent = true;
    ++lent_;
  }
  lender_->lend(loan);
}

engine::FitEnd FitRunner::take_back(Node& node, const DocumentComponents& components) {
  {
    const std::lock_guard lock(mutex_);
    node.is_lent = false;
    --lent_;
  }
  const std::string& path = node.fit.id.path();
  const engine::FitEnd end = lender_->take_back(path);
  run_.log.drain();  // its rows of history have come before
  if (end != engine::FitEnd::kCompleted)
    return end;
  const std::optional<StateDict> record = record_of(node);
  if (!record) {
    throw StorageError(run_.folder.fit_result(path).string() +
                       ": is not what another process has sent; resume the run");
  }
  CompletedFit result = completed_from(*record, path, components);
  const std::lock_guard lock(mutex_);
  planner_.completed(node.fit.id, std::move(result));
  return end;
}

engine::FitEnd FitRunner::train(Node& node, const DocumentComponents& components,
                                FitContext& context, const engine::Settled& settled) {
  FitOrder order{node.fit.id, *node.fit.rows, &run_.timeline};
  if (node.fit.epochs) {
    const std::lock_guard lock(mutex_);  // it is the planner's
    order.rows.fixed_epochs = node.fit.epochs();
  }
  if (node.fit.start && node.fit.start->from == WarmStart::From::kWeights)
    order.start_weights = weights_of(node.fit.start->fit);
  order.deadline = node.fit.deadline;
  order.communicator = run_.shared_steps();
  order.preprocessing = context.saved_preprocessing();
  context.begin(settled);
  const bool is_baseline = !node.fit.baseline.empty();
  std::optional<Fit> prepared;
  const auto prepare = [&] { prepared.emplace(components, std::move(order)); };
  is_baseline ? at_baseline(run_.workflow(), node.fit.baseline, prepare) : prepare();
  Fit& fit = *prepared;
  context.use(fit);
  if (node.fit.start && node.fit.start->from == WarmStart::From::kCheckpoint) {
    try {
      context.expect_weights_of(fit.model());
    } catch (const StorageError& error) {
      throw TrainingError(node.fit.id.path() + " goes on with the weights of " +
                          node.fit.start->fit + ", which has another model: " + error.what() +
                          "; leave what changes the sizes of the model out of search.space");
    }
  }
  if (std::exchange(node.is_to_be_noted, false)) {  // those of others say the same
    for (const std::string& note : fit.notes())
      run_.log.note(note);
  }
  engine::TrainingResult training;
  try {
    if (is_baseline && fit.has_no_parameters()) {
      fit.model().eval();
    } else {
      training = train_keeping_what_is_saved(fit, context);
    }
  } catch (const Interrupted&) {
    // Reasons in their order of precedence. A stop of the run ends everything. A fit that the plan
    // pauses must not be reported as stopped.
    if (run_.stop().stop_requested())
      throw;
    if (context.verdict() != FitVerdict::kContinue)
      return end_of(context.verdict());
    if (context.is_stopped())
      return engine::FitEnd::kStopped;
    throw;
  }
  complete(node, fit, context, training);
  return engine::FitEnd::kCompleted;
}

engine::TrainingResult FitRunner::train_keeping_what_is_saved(Fit& fit, FitContext& context) {
  try {
    try {
      const engine::TrainingResult result =
          context.saying_where([&] { return fit.train(context); });
      context.finish();
      return result;
    } catch (const Interrupted&) {
      context.finish();  // it notes that everything worth keeping is saved
      throw;
    }
  } catch (const StorageError& error) {
    // A full disk costs no more than the steps since the last checkpoint, if the message shows how
    // to go on.
    const std::string checkpoint = context.last_checkpoint();
    throw StorageError(std::string(error.what()) + "; " +
                       (checkpoint.empty() ? "no checkpoint exists yet"
                                           : "the last good checkpoint is " + checkpoint) +
                       "; when this is mended: workflow-runner resume " +
                       run_.folder.path().string());
  }
}

void FitRunner::complete(Node& node, Fit& fit, FitContext& context,
                         const engine::TrainingResult& training) {
  const std::string& path = node.fit.id.path();
  const bool is_validated = !node.fit.rows->validation.empty();
  const bool is_tested = !node.fit.rows->test.empty();
  CompletedFit finished;
  FitResult& result = finished.result = fit_result(training);
  result.name = path;
  result.model_info = model_info(fit.components(), fit);
  if (node.fit.counts_cost)
    result.forward_cost = forward_cost_of(fit.components(), fit.model_spec());
  result.rows = row_counts(*node.fit.rows, fit.components().dataset().is_stream());
  result.transformed_target = fit.transforms_targets();
  Number final_loss = training.final_loss;
  const std::stop_token stop = run_.stop_between_steps();
  if (is_validated) {
    result.validation = evaluation_result(context.saying_where([&] { return fit.validate(stop); }));
    if (training.total_epochs == 0)  // nothing was trained
      final_loss = result.validation->loss;
  }
  if (const std::optional<AdaptationRecord> adaptation = fit.adaptation())
    result.prequential = prequential_result(*adaptation);
  for (const StructureRecord& structure : fit.structures())
    result.structures.push_back(structure_result(structure));
  if (is_tested) {
    result.test = evaluation_result(context.saying_where([&] { return fit.test(stop); }));
  }
  StateDict outputs_state;
  if (!node.fit.rows->outputs.empty()) {
    finished.for_outputs = context.saying_where([&] { return fit.predict_for_outputs(stop); });
    for (std::size_t i = 0; i < finished.for_outputs.size(); ++i)
      outputs_state.put(std::to_string(i), finished.for_outputs[i].computer->state());
  }
  StateDict report_state;
  // Metrics that outlive the fit, with the state of its own; saved as well, so that a resumed run
  // can pool the folds of earlier processes.
  finished.report_metrics = make_report_metrics(fit.components());
  for (std::size_t i = 0; (is_validated || is_tested) && i < finished.report_metrics.size(); ++i) {
    const StateDict state = fit.report_metrics()[i].computer->state();
    finished.report_metrics[i].computer->load_state(state);
    report_state.put(std::to_string(i), state);
  }
  if (node.fit.is_result)
    saying_how_to_go_on(run_.folder, [&] { write_model(fit, run_.folder.path()); });
  if (node.fit.is_result && !fit.structures().empty())
    saying_how_to_go_on(run_.folder, [&] { write_architecture(fit); });
  if (!node.fit.model_folder.empty())
    saying_how_to_go_on(run_.folder, [&] { write_kept_model(node.fit, fit); });
  if (node.fit.is_drawn && run_.options.draw_model)
    finished.drawing = run_.options.draw_model(fit.model());
  StateDict record;
  record.put("result", to_json(result));
  if (node.fit.is_drawn) {
    record.put("drawing",
               nlohmann::json{{"parts", finished.drawing.parts}, {"svg", finished.drawing.svg}});
  }
  record.put("report_metrics", std::move(report_state));
  if (has_outputs(fit.components().workflow()))
    record.put("for_outputs", std::move(outputs_state));
  // The metrics are computed again behind output stages, and for an ensemble.
  if (has_outputs(fit.components().workflow()) || !node.fit.model_folder.empty()) {
    fit.fitted_metrics().save_in(record);
    finished.fitted_metrics = fit.fitted_metrics();
  }
  if (node.fit.keeps_weights)
    record.put(kWeights, module_state(fit.model()));
  engine::count_fetched(record, &run_.timeline);
  // All rows are there: finish() waited until the events of this fit were delivered.
  record.put("run",
             run_.conditions().marks(run_.log.rows_of(path, training.total_epochs), node.identity));
  write_record(path, record);
  const Scores* const scores = result.validated();
  // "Best" means weights that were chosen, not the last ones.
  context.complete({training.selects_best ? training.best_epoch : 0, training.total_epochs,
                    final_loss, training.best_loss, training.stop_reason,
                    scores != nullptr ? scores->metrics : std::vector<MetricValue>(),
                    training.training_time_seconds});
  const std::lock_guard lock(mutex_);
  planner_.completed(node.fit.id, std::move(finished));
}

/// Facts of the training alone are in the record of the other fit; transforms are fitted again, to
/// the same rows.
void FitRunner::take_over(const Node& node, const DocumentComponents& components) {
  const std::string& path = node.fit.id.path();
  const StateDict other = read_state_folder(run_.folder.fit_result(node.fit.start->fit));
  Fit fit(components,
          {node.fit.id, *node.fit.rows, &run_.timeline, weights_in(other, node.fit.start->fit)});
  fit.model().eval();
  if (!node.fit.model_folder.empty())
    saying_how_to_go_on(run_.folder, [&] { write_kept_model(node.fit, fit); });
  FitResult result = fit_result_from(other.value("result"), node.fit.start->fit);
  result.name = path;
  StateDict record;
  StateDict report_state = other.part("report_metrics");
  // The other fit, such as a trial, has seen no test rows.
  if (!node.fit.rows->test.empty()) {
    result.rows = row_counts(*node.fit.rows, false);
    result.test = evaluation_result(fit.test(run_.stop_between_steps()));
    report_state = StateDict();
    for (std::size_t i = 0; i < fit.report_metrics().size(); ++i)
      report_state.put(std::to_string(i), fit.report_metrics()[i].computer->state());
    fit.fitted_metrics().save_in(record);
  }
  record.put("result", to_json(result));
  record.put("report_metrics", std::move(report_state));
  for (const char* const part : {"for_outputs", "metrics"}) {
    if (other.has_part(part) && !record.has_part(part))
      record.put(part, other.part(part));
  }
  record.put("run", run_.conditions().marks(run_.log.rows_of(path, 0), node.identity));
  write_record(path, record);
  CompletedFit finished = completed_from(record, path, components);
  const std::lock_guard lock(mutex_);
  planner_.completed(node.fit.id, std::move(finished));
}

void FitRunner::write_record(const std::string& path, const StateDict& record) const {
  const fs::path place = run_.folder.fit_result(path);
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) {
    throw StorageError(place.parent_path().string() + ": cannot be made for the results of fits: " +
                       error.message() + "; make room or permit writing, then resume the run");
  }
  saying_how_to_go_on(run_.folder, [&] { write_state_folder(place, record); });
}

/// A folder that predictor and export read like that of a run. Without a document, where it is the
/// run's.
void FitRunner::write_kept_model(const PlannedFit& planned, Fit& fit) const {
  const fs::path folder = run_.folder.path() / planned.model_folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw StorageError(folder.string() + ": cannot be made for a model: " + error.message() +
                       "; make room or permit writing, then resume the run");
  }
  if (planned.workflow) {
    write_file_atomically(RunFolder::document_of(folder),
                          write_workflow(planned.workflow->resolved));
  }
  write_model(fit, folder);
}

void FitRunner::write_model(Fit& fit, const fs::path& folder) const {
  // The weights first. A kill before the preprocessing leaves none, or one with another hash, which
  // read_preprocessing() refuses; the fit has no record yet and writes both again.
  // Readers of the file cannot tell buffers from parameters otherwise.
  nlohmann::json buffers = nlohmann::json::array();
  for (const auto& buffer : fit.model().named_buffers())
    buffers.push_back(buffer.key());
  const StateDict weights = module_state(fit.model());
  engine::count_fetched(weights, &run_.timeline);
  const fs::path file = RunFolder::weights_of(folder);
  write_safetensors(
      file,
      {weights.tensors(),
       {{"format", "pt"}, {"treadle", std::string(version())}, {kModelBuffers, buffers.dump()}}});
  StateDict preprocessing = fit.preprocessing();
  preprocessing.put(kModelChecksum, nlohmann::json(hash_file(file)));
  write_state_folder(RunFolder::preprocessing_of(folder), preprocessing);
}

/// The document of the network that the fit has chosen.
void FitRunner::write_architecture(const Fit& fit) const {
  const nlohmann::json document =
      derived_document(run_.runtime, fit.components().workflow(), fit.structures());
  const fs::path file = RunFolder::architecture_of(run_.folder.path());
  write_file_atomically(file, write_workflow(document));
  const std::optional<std::int64_t> most = fit.max_parameters();
  if (!most)
    return;
  const DocumentComponents derived(run_.runtime, run_.runtime.resolve(document), run_.dataset());
  std::int64_t parameters = 0;
  const std::shared_ptr<Model> network = derived.make_model(fit.model_spec());
  for (const at::Tensor& one : distinct_parameters(*network))
    parameters += one.numel();
  if (parameters > *most) {
    throw TrainingError("the network that was chosen has " + std::to_string(parameters) +
                        " parameters, and training.max_parameters is " + std::to_string(*most) +
                        "; its document is " + file.string() +
                        "; allow more, or leave large operations out of the search");
  }
}

StateDict FitRunner::weights_of(const std::string& path) const {
  // From disk, where they are the same whether this process or an earlier one trained that fit.
  return weights_in(read_state_folder(run_.folder.fit_result(path)), path);
}

std::optional<StateDict> FitRunner::record_of(const Node& node) {
  const std::string& path = node.fit.id.path();
  const fs::path place = run_.folder.fit_result(path);
  // A fresh run starts with an empty folder, so a record can only be of an earlier process, or of
  // one that searches with this one.
  if (!may_have_files() || !fs::exists(place))
    return std::nullopt;
  StateDict saved;
  try {
    saved = read_state_folder(place);
  } catch (const StorageError& error) {
    // Its checkpoints are still there, or it is trained from its beginning: both give the same.
    run_.log.note("the result of " + path +
                  " cannot be read, so its training goes on from its checkpoints: " + error.what());
    return std::nullopt;
  }
  run_.conditions().recognize(saved, node.identity, place, run_.folder);
  run_.log.restore(path, saved.part("run").value("history").get<std::string>(), place.string());
  return saved;
}

CompletedFit FitRunner::completed_from(const StateDict& record, const std::string& path,
                                       const DocumentComponents& components) const {
  CompletedFit finished;
  finished.result = fit_result_from(record.value("result"), path);
  if (record.has_value("drawing")) {
    const nlohmann::json& drawing = record.value("drawing");
    drawing.at("parts").get_to(finished.drawing.parts);
    drawing.at("svg").get_to(finished.drawing.svg);
  }
  finished.report_metrics = make_report_metrics(components);
  const StateDict& metrics = record.part("report_metrics");
  for (std::size_t i = 0; i < finished.report_metrics.size(); ++i) {
    const std::string key = std::to_string(i);
    if (metrics.has_part(key))
      finished.report_metrics[i].computer->load_state(metrics.part(key));
  }
  finished.fitted_metrics.load_from(record);
  if (!record.has_part("for_outputs") || record.part("for_outputs").empty())
    return finished;
  finished.for_outputs = make_collecting_metrics(components);
  for (std::size_t i = 0; i < finished.for_outputs.size(); ++i) {
    finished.for_outputs[i].computer->load_state(
        record.part("for_outputs").part(std::to_string(i)));
  }
  return finished;
}

}  // namespace treadle::internal
