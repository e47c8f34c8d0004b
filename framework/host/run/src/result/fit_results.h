#pragma once

#include <filesystem>
#include <vector>

#include <treadle/core/training/adaptation.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/engine/session.h>
#include <treadle/host/record/fit_result.h>

/// Results of the engine and the metrics, as the results of a run hold them.
namespace treadle::internal {

/// The numbers and the weights of a training.
FitResult fit_result(const engine::TrainingResult& training);
EvaluationResult evaluation_result(const engine::ValidationResult& evaluated);
/// Of a training that tests each batch before it trains on it.
PrequentialResult prequential_result(const AdaptationRecord& record);
StructureResult structure_result(const StructureRecord& record);

/// Each name once. Those of several outputs ("residual_sample.0", "residual_sample.1" …) become one
/// table whose first column is the output.
std::vector<ResultTable> result_tables(const std::vector<MetricTable>& tables);

/// Keeps `tables` small: the values of one of more than kMostNumbersInResult numbers are written as
/// CSV into `folder`, and replaced by the name of the file, relative to `run`. Throws StorageError.
void move_large_tables(std::vector<ResultTable>& tables, const std::filesystem::path& run,
                       const std::filesystem::path& folder);
constexpr std::size_t kMostNumbersInResult = 200;

}  // namespace treadle::internal
