#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/runtime.h>

namespace treadle {

/// Why a finished run's model predicts what it predicts: importances of columns, partial
/// dependence, SHAP values, worst rows, subgroups, as explain.json has them. docs/guide/reasons.md
/// describes them. The settings are those of the document's "explain", where it has them.
///
/// `data`: a file with targets, of the kind the run was trained on, which the run's model predicts.
/// Empty, or the run's own data: the rows that the run held out, each predicted by a model that was
/// not trained on it. `saved`: as in Predictor::load(); a file needs `data`. `device`: likewise.
///
/// Throws DataError for texts and for rows that cannot be explained, StorageError where a run is
/// not finished, its data has changed or checkpoints of its folds are gone, and what
/// Predictor::load() throws.
nlohmann::json explain_run(const Runtime& runtime, const std::filesystem::path& saved,
                           const std::filesystem::path& data = {},
                           const std::string& device = "auto");

}  // namespace treadle
