#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_list.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// What several finished runs predict for the same rows, to compare them row by row.
struct ComparedPredictions {
  struct Target {
    TargetSpec spec;
    /// In the data's units: int64 [N, positions...] of classes, else float64 [N, positions...,
    /// width].
    at::Tensor actual;
    /// One per run, as Prediction::values: float64 [N, positions..., width], with a probability for
    /// each of spec.class_names where there are any.
    std::vector<at::Tensor> predicted;
  };

  RowList rows;  ///< their numbers in the data, ascending; N of them
  std::vector<Target> targets;
  /// How many rows each run could be compared on; the rows above are those that all have.
  std::vector<std::int64_t> candidates;
  /// Whether some of the rows validated a training, and so may have chosen its epoch or settings.
  bool have_validated = false;
  /// The place of one of the rows in its source: "line 17 of data/iris.csv".
  std::function<std::string(std::int64_t row)> describe;
};

/// Which rows to compare on.
struct ComparedRows {
  enum class From {
    kValidation,  ///< the rows that judge a training, or each fold of a cross-validation
    kTest         ///< the rows that only test the run's model
  };
  From from = From::kValidation;
  /// A file with targets, of the kind the runs were trained on, instead of their own data. Where it
  /// is the data of one of them, that run has the rows above.
  std::filesystem::path file = {};
};

/// Predicts with each run for the rows that all of them hold out. **No row is predicted by a model
/// that was trained on it**: of a cross-validation, the fold that holds a row out predicts it, with
/// the weights of its last checkpoint; where several do, the first. Rows of `file` that no run was
/// trained on, as far as their data is another one, are predicted by the runs' models: as Predictor
/// does, so by the ensemble where a search has one.
///
/// `runs` are folders, at least two. `device`: as in Predictor::load(). Reads the data of the runs
/// and changes nothing. Throws DataError where runs have another target, other data or no row in
/// common, StorageError where a run is not finished, its data has changed or checkpoints of its
/// folds are gone, and what Predictor::load() throws.
ComparedPredictions predict_for_comparison(const Runtime& runtime,
                                           std::span<const std::filesystem::path> runs,
                                           const ComparedRows& rows = {},
                                           const std::string& device = "auto");

}  // namespace treadle
