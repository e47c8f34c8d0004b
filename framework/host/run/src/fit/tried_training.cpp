#include "fit/tried_training.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/run_context.h>

#include "store/state_snapshot.h"

namespace treadle::internal {
namespace {

/// Lets a training make a few steps and then asks it to stop. Keeps nothing.
class BriefContext final : public engine::RunContext {
 public:
  BriefContext(const Fit& fit, const TriedSteps& steps) : fit_(fit), steps_(steps) {}

  std::optional<double> seconds_per_step() const {
    if (steps_made_ < 2)
      return std::nullopt;
    return std::chrono::duration<double>(last_ - first_).count() /
           static_cast<double>(steps_made_ - 1);
  }

 private:
  const FitId& do_fit() const override { return fit_.id(); }
  const RandomStreams& do_random() const override { return fit_.random(); }
  std::stop_token do_stop_token() const override { return stop_.get_token(); }
  void do_step_completed(const StepProgress& progress) override {
    last_ = Clock::now();
    if (steps_made_++ == 0)
      first_ = last_;
    if (progress.step < steps_.fewest)
      return;
    if (progress.step >= steps_.most || Clock::now() - start_ > steps_.patience)
      stop_.request_stop();
  }
  void do_epoch_completed(const EpochSummary&) override {}
  void do_note(const std::string&) override {}
  // A real run writes a copy, and keeps the copy's memory.
  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition&, int) override {
    saved_.take(state);
  }
  std::optional<StateDict> do_resume_state() override { return std::nullopt; }
  std::string do_last_checkpoint() const override { return {}; }

  using Clock = std::chrono::steady_clock;

  const Fit& fit_;
  const TriedSteps steps_;
  const Clock::time_point start_ = Clock::now();
  std::int64_t steps_made_ = 0;
  Clock::time_point first_;
  Clock::time_point last_;
  std::stop_source stop_;
  StateSnapshot saved_;
};

}  // namespace

RowList first_of(const RowList& rows, std::int64_t count) {
  return rows.part(0, std::min(rows.size(), static_cast<std::size_t>(count)));
}

FitRows rows_to_try(const DocumentComponents& components, const Fold& fold, const TriedSteps& steps,
                    int workers) {
  // Transforms and losses are fitted on them, too.
  constexpr std::int64_t kFewest = 8192;
  const TrainingPlan plan = components.training_plan();
  // The first batch is evaluated alone, then as many at once as there are workers.
  const std::int64_t evaluated = 1 + std::min<std::int64_t>(workers, engine::kMostBatchesAtOnce);
  return {first_of(fold.training, std::max(kFewest, (steps.most + 1) * plan.batch_size)),
          first_of(fold.validation, evaluated * plan.evaluation_batch_size), 0};
}

std::vector<RowList> short_batches_to_try(const DocumentComponents& components, const Fold& tried) {
  // Shards and micro-batches cut a batch further, into pieces of a row.
  constexpr std::int64_t kShort = 64;
  constexpr std::size_t kMost = 4;
  const TrainingPlan plan = components.training_plan();
  const auto last_batch = [&](const RowList& rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t rest = count % plan.batch_size;
    return count < plan.batch_size || rest == 0 ? std::int64_t{0} : rest;
  };
  std::map<std::int64_t, RowList> by_size;
  const auto add = [&](const Fold& fold) {
    const std::int64_t size = last_batch(fold.training);
    if (size > 0 && size <= kShort && size != last_batch(tried.training))
      by_size.emplace(size, first_of(fold.training, plan.batch_size + size));
  };
  for (const Fold& fold : components.plan().folds) {
    add(fold);
    for (const Fold& inner : fold.inner)
      add(inner);
  }
  if (components.plan().refit)
    add(*components.plan().refit);
  std::vector<RowList> rows;
  for (auto& [size, list] : by_size) {
    if (rows.size() < kMost)
      rows.push_back(std::move(list));
  }
  return rows;
}

std::optional<double> try_training(Fit& fit, const TriedSteps& steps) {
  BriefContext training(fit, steps);
  try {
    fit.train(training);
  } catch (const Interrupted&) {
    // As asked.
  }
  if (fit.has_validation_rows())
    fit.validate(std::stop_token());
  return training.seconds_per_step();
}

std::int64_t bytes_of_row_lists(const Fold& fold) {
  return static_cast<std::int64_t>(3 * sizeof(std::int64_t) * fold.training.size());
}

}  // namespace treadle::internal
