#include "session/epoch_evaluation.h"

#include <memory>
#include <string>

namespace treadle::engine {
namespace {

constexpr const char* kEvaluated = "evaluated";

std::string state_of_metric(std::size_t index) {
  return "metric-" + std::to_string(index);
}

}  // namespace

EvaluationSetup evaluation_setup(const SessionSetup& setup) {
  return {setup.model,     setup.objective, setup.preparation, setup.timeline,
          setup.precision, nullptr,         setup.group};
}

std::stop_token EpochEvaluation::stop_token() const {
  return setup_.group != nullptr ? std::stop_token() : context_.stop_token();
}

Evaluation EpochEvaluation::loss_over(BatchStream& rows) const {
  EvaluationSetup whole = evaluation_setup(setup_);
  whole.group = nullptr;
  return evaluate_metrics(whole, rows, stop_token(), {});
}

void EpochEvaluation::evaluate(BatchSource& rows, std::int64_t first_batch,
                               EpochSummary& summary) const {
  EvaluationSetup evaluation = evaluation_setup(setup_);
  std::unique_ptr<BatchStream> stream;
  if (first_batch == 0) {
    stream = rows_to_evaluate(rows, evaluation);
  } else {
    evaluation.group = nullptr;
    stream = rows.epoch(0, first_batch);
  }
  summary.val_loss = evaluate_metrics(evaluation, *stream, stop_token(), setup_.metrics).loss;
  add_metrics(summary);
}

void EpochEvaluation::add(const Batch& batch) {
  if (losses_.rows() == 0)
    reset_metrics();
  test_batch(evaluation_setup(setup_), batch, losses_, setup_.metrics);
}

void EpochEvaluation::take(EpochSummary& summary) {
  if (losses_.rows() == 0)
    return;
  summary.val_loss = losses_.value();
  add_metrics(summary);
  losses_.clear();
}

void EpochEvaluation::reset_metrics() const {
  for (const TargetMetric& metric : setup_.metrics)
    metric.metric->reset();
}

void EpochEvaluation::add_metrics(EpochSummary& summary) const {
  for (const TargetMetric& metric : setup_.metrics) {
    const MetricResult result = metric.compute();
    summary.metrics.insert(summary.metrics.end(), result.values.begin(), result.values.end());
  }
}

void EpochEvaluation::save_in(StateDict& state) const {
  if (losses_.rows() == 0)
    return;
  StateDict mine;
  mine.put("losses", losses_.state());
  for (std::size_t i = 0; i < setup_.metrics.size(); ++i)
    mine.put(state_of_metric(i), setup_.metrics[i].metric->state());
  state.put(kEvaluated, std::move(mine));
}

void EpochEvaluation::load_from(const StateDict& state) {
  if (!state.has_part(kEvaluated))
    return;
  const StateDict& mine = state.part(kEvaluated);
  losses_.load_state(mine.part("losses"));
  reset_metrics();
  for (std::size_t i = 0; i < setup_.metrics.size(); ++i)
    setup_.metrics[i].metric->load_state(mine.part(state_of_metric(i)));
}

}  // namespace treadle::engine
