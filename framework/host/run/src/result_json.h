#pragma once

#include <nlohmann/json.hpp>

#include <treadle/core/training_workflow.h>

#include "ingredients.h"
#include "trial.h"

/// The shapes of result.json; docs/guide/results.md describes them for readers.
namespace treadle::internal {

nlohmann::json to_json(const TrainingResult& result);
nlohmann::json to_json(const ValidationResult& result);
nlohmann::json to_json(const MetricTable& table);

/// name, version, architecture, parameter_count, input_shape, output_shape.
nlohmann::json model_info(const Ingredients& ingredients, Trial& trial);

/// mean_loss, std_loss, mean_metrics, std_metrics, fold_results, total_time_seconds. std is the
/// sample standard deviation (divided by n - 1).
nlohmann::json cross_validation_summary(const nlohmann::json& folds);

}  // namespace treadle::internal
