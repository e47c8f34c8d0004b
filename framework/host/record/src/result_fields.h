#pragma once

#include <treadle/host/record/fit_result.h>

#include "fields.h"

/// The layout of a training in result.json.
namespace treadle::fields {

template <typename F>
void describe(F& f, Of<F, Scores> scores) {
  f.scores(scores.loss, scores.metrics);
}

/// Outputs are counted: their numbers are integers.
nlohmann::json rows_of(const ResultTable& table);

template <typename F>
void describe(F& f, Of<F, ResultTable> table) {
  f("name", table.name);
  f("row_labels", table.row_labels);
  f("column_labels", table.column_labels);
  f.if_any("outputs", table.outputs);
  if constexpr (F::kWrites) {
    if (table.file.empty())
      return f("values", rows_of(table));
  } else {
    f.if_any("values", table.values);
  }
  f.unless_default("file", table.file);
  f.unless_default("rows", table.rows);
}

/// `seconds`: the key of the time that it took.
template <typename F>
void evaluation_fields(F& f, Of<F, EvaluationResult> result, const char* seconds) {
  f.metric_list("metric_list", result.metrics);
  f.scores(result.loss, result.metrics);
  f("sample_count", result.sample_count);
  f(seconds, result.seconds);
  f("tables", result.tables);
  f.if_any("transformed_target", result.transformed_target);
}

template <typename F>
void describe(F& f, Of<F, ChosenWeights> weights) {
  f("epoch", weights.epoch);
  f.either("chosen", weights.are_best, "best", "last");
  f.unless_default("on", weights.on);
  f.unless_default("by", weights.by);
  f.unless_default("averaged", weights.are_average);
}

template <typename F>
void describe(F& f, Of<F, FitRowCounts> rows) {
  f.or_null("training", rows.training);
  f("validation", rows.validation);
  f.or_null("validation_hash", rows.validation_hash);
  f("test", rows.test);
  f.or_null("test_hash", rows.test_hash);
}

template <typename F>
void describe(F& f, Of<F, ModelInfo> model) {
  f("name", model.name);
  f("version", model.version);
  f("architecture", model.architecture);
  f("parameter_count", model.parameter_count);
  f.if_any("weight_bytes", model.weight_bytes);
  f("input_shape", model.input_shape);
  f("output_shape", model.output_shape);
  f.unless_default("execution", model.execution);
}

template <typename F>
void describe(F& f, Of<F, ForwardCostResult> cost) {
  f("operations", cost.operations);
  f("bytes", cost.bytes);
  f("calls", cost.calls);
}

template <typename F>
void describe(F& f, Of<F, SkippedSteps> skipped) {
  f("count", skipped.count);
  f("first", skipped.first);
}

template <typename F>
void describe(F& f, Of<F, PrequentialResult::Window> window) {
  f("first_row", window.first_row);
  f("rows", window.rows);
  f("task", window.task);
  f.scores(window.loss, window.metrics);
}

template <typename F>
void describe(F& f, Of<F, PrequentialResult::Recovery> recovery) {
  f("metric", recovery.metric);
  f.if_any("threshold", recovery.threshold);
  f.if_any("share", recovery.share);
}

template <typename F>
void describe(F& f, Of<F, PrequentialResult> result) {
  f.metric_list("metric_list", result.metrics);
  f.scores(result.loss, result.metrics);
  f("sample_count", result.sample_count);
  f("window_rows", result.window_rows);
  f("windows", result.windows);
  f("recovery", result.recovery);
  f.each("changes", result.changes, [&](F& g, Of<F, PrequentialResult::Change> change, auto) {
    g("row", change.row);
    g("task", change.task);
    g.or_null("window", change.window);
    g.or_null("before", change.before);
    g.or_null("after", change.after);
    if (result.recovery.threshold)
      g.or_null("windows_to_threshold", change.windows_to_threshold);
    if (result.recovery.share)
      g.or_null("windows_to_share", change.windows_to_share);
  });
  f.or_null("variances", result.variances);
}

template <typename F>
void describe(F& f, Of<F, StructureResult::Choice> choice) {
  f("name", choice.name);
  f("node", choice.node);
  f("weights", choice.weights);
  f.or_null("chosen", choice.chosen);
}

template <typename F>
void describe(F& f, Of<F, StructureResult> structure) {
  f("structure", structure.structure);
  f("choices", structure.choices);
}

template <typename F>
void describe(F& f, Of<F, Milestone> milestone) {
  f("level", milestone.level);
  f("value", milestone.value);
  f("epoch", milestone.epoch);
  f("training_time_seconds", milestone.seconds);
}

template <typename F>
void describe(F& f, Of<F, Milestones> milestones) {
  f("metric", milestones.metric);
  f.either("of", milestones.are_shares, "way", "value");
  f("reached", milestones.reached);
}

/// Of what all folds have in common.
template <typename F>
void model_fields(F& f, Of<F, FitResult> result) {
  f("model_info", result.model_info);
  f("transformed_target", result.transformed_target);
  f.if_any("forward_cost", result.forward_cost);
}

/// All but "name" and "metrics".
template <typename F>
void training_fields(F& f, Of<F, FitResult> result) {
  f("final_loss", result.final_loss);
  f("best_loss", result.best_loss);
  f("best_epoch", result.best_epoch);
  f("total_epochs", result.total_epochs);
  f("stop_reason", result.stop_reason);
  f("training_time_seconds", result.training_time_seconds);
  f.unless_default("replayed_steps", result.replayed_steps);
  f.unless_default("not_captured", result.not_captured);
  f.if_any("skipped_steps", result.skipped_steps);
  f("weights", result.weights);
  f("rows", result.rows);
  f.if_any("structures", result.structures);
  f.if_any("milestones", result.milestones);
  f.if_any("prequential", result.prequential);
  f.object("validation", result.validation, [](F& g, Of<F, EvaluationResult> evaluation) {
    evaluation_fields(g, evaluation, "validation_time_seconds");
  });
  f.object("test", result.test, [](F& g, Of<F, EvaluationResult> evaluation) {
    evaluation_fields(g, evaluation, "test_time_seconds");
  });
}

template <typename F>
void describe(F& f, Of<F, FitResult> result) {
  f("name", result.name);
  model_fields(f, result);
  training_fields(f, result);
}

/// Numbers by the metrics' names in the order that the folds have, and with their directions.
void order_like_folds(CrossValidationResult& result);

template <typename F>
void describe(F& f, Of<F, CrossValidationResult> result) {
  f("mean_loss", result.mean_loss);
  f("std_loss", result.std_loss);
  f.metrics("mean_metrics", result.mean_metrics);
  f.metrics("std_metrics", result.std_metrics);
  f("total_time_seconds", result.total_time_seconds);
  f.unless_default("undefined", result.undefined);
  const auto fold_fields = [&](F& g, Of<F, FitResult> fold, std::size_t i) {
    describe(g, fold);
    g.derived([&](auto& writer) {
      const Scores* const scores = fold.evaluated();
      writer.metrics("metrics", scores != nullptr ? scores->metrics : std::vector<MetricValue>());
    });
    if constexpr (F::kWrites) {
      if (i < result.inner.size())
        g("inner", result.inner[i]);
    } else if (g.has("inner") && result.inner.size() == i) {
      g("inner", result.inner.emplace_back());
    }
  };
  f.each("fold_results", result.fold_results, fold_fields, 1);
  if constexpr (!F::kWrites)
    order_like_folds(result);
}

}  // namespace treadle::fields
