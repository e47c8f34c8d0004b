#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/training/adaptation.h>
#include <treadle/engine/session.h>

/// The shapes of result.json; docs/guide/results.md describes them for readers.
namespace treadle::internal {

nlohmann::json to_json(const engine::TrainingResult& result);
nlohmann::json to_json(const engine::ValidationResult& result);
nlohmann::json to_json(const MetricTable& table);
/// Of the test rows: as of validation rows, but "test_time_seconds".
nlohmann::json test_record(const engine::ValidationResult& result);

/// How a training that tests each batch before it trains on it went: windows, changes, and the
/// "loss", "metrics" and "metric_list" that it is judged by, means over the windows.
nlohmann::json to_json(const AdaptationRecord& record);

/// The tables of a result, each name once. Those of several outputs ("residual_sample.0",
/// "residual_sample.1" …) become one table whose first column is the output.
nlohmann::json to_json(const std::vector<MetricTable>& tables);

/// Keeps `tables` small: one of more than kMostNumbersInResult numbers is written as CSV into
/// `folder`, and has in place of "values" its "file", relative to `run`, and its "rows".
void move_large_tables(nlohmann::json& tables, const std::filesystem::path& run,
                       const std::filesystem::path& folder);
constexpr std::size_t kMostNumbersInResult = 200;

/// The metrics in the document's order, as an object of JSON cannot have them: "name", and "better"
/// ("higher" or "lower") where a direction is better.
nlohmann::json metric_list(const std::vector<MetricValue>& metrics);

/// Which epoch's weights a training ended with: "epoch", "chosen" ("best" or "last"), where the
/// best were, the rows they were chosen "on" and the number that they were chosen "by", and
/// "averaged" where they are an average over the steps before.
nlohmann::json weights_record(const engine::TrainingResult& training);

/// What a fold is judged by, of its result: its test rows, where it has any, else its validation
/// rows; where each batch was tested before it was trained on, what that came to.
std::string_view judging_key(const nlohmann::json& fold);
const nlohmann::json& judging_part(const nlohmann::json& fold);

/// "loss" or a metric of such a part.
Number judged_number(const nlohmann::json& part, const std::string& name);

/// Over the folds in which a number is defined; undefined where it is in none. Sums are in order of
/// the folds. The deviation is that of the sample (divided by n - 1).
struct FoldMoments {
  Number mean;
  Number deviation;
  std::size_t undefined = 0;  ///< folds
};
FoldMoments moments_over_folds(std::span<const Number> values);

/// mean_loss, std_loss, mean_metrics, std_metrics, fold_results, total_time_seconds; and under
/// "undefined", by name, which folds are not in a mean, and why.
nlohmann::json cross_validation_summary(const nlohmann::json& folds);

}  // namespace treadle::internal
