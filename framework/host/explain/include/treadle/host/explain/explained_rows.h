#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/validation/predictions.h>

/// Reasons for what a model predicts. A model is a function of rows here, so that everything holds
/// for any model. Functions without state: any thread; tensors are on the CPU.
namespace treadle::explain {

/// Where the values of a column are in the inputs of a batch.
struct Place {
  std::size_t input = 0;
  std::int64_t index = 0;  ///< of the last dimension; kWhole: the whole input

  static constexpr std::int64_t kWhole = -1;
};

/// A column of the data's source. It is changed as a whole: the windows of a series have all steps
/// of a channel of another row, and what was made of one source column, such as its lags, stays
/// together.
struct ExplainedColumn {
  std::string name;
  std::vector<Place> places;
  bool is_category = false;
  std::vector<std::string> names = {};  ///< of a category's values, by their numbers
  /// One value per row: it has a partial dependence. Expects one place, in an input [B, F].
  bool is_flat = false;
  /// values_of() has values for it: it is flat or a channel of windows.
  bool has_values = false;
};

/// The columns of `spec`: one per column of a table or of windows of one; any other input
/// is a column of its own, with the inputs that describe it (lengths, masks). Throws a DataError
/// for tokens.
std::vector<ExplainedColumn> columns_of(const DataSpec& spec);

/// The value of a column in each row, of windows that of the last step: float64 [B], NaN: missing.
/// Of a category its number. Expects column.has_values.
at::Tensor values_of(const ExplainedColumn& column, const Batch& rows);

/// Rows, and a model that was not trained on them.
struct ExplainedPart {
  std::string name;  ///< "fold-1"
  Batch rows;        ///< before any transform, with targets
  /// Predictions for any number of rows like these. Targets need not be there.
  std::function<Predictions(const Batch&)> predict;
};

/// The input of an explanation: one model and its rows, or a model for each fold.
struct ExplainedRows {
  std::vector<TargetSpec> targets;
  std::vector<ExplainedColumn> columns;
  std::vector<ExplainedPart> parts;

  std::int64_t rows() const;
  /// The values of a column in all rows, part after part.
  at::Tensor values_of(const ExplainedColumn& column) const;
};

/// The rows that are handed to a model at once: few calls for few rows, bounded memory for many.
std::int64_t rows_at_once(const Batch& like);

/// The inputs, groups and numbers of `rows`, `times` times in succession; without targets.
Batch repeated(const Batch& rows, std::int64_t times);

/// Replaces a column in rows [begin, begin + count) of `changed` by that of rows `order` of `from`,
/// int64 [count].
void put_column(const ExplainedColumn& column, const Batch& from, const at::Tensor& order,
                Batch& changed, std::int64_t begin);

/// Rows [begin, begin + count), as views.
Predictions slice(const Predictions& predictions, std::int64_t begin, std::int64_t count);

/// The numbers of a prediction that are explained: float64 [B, K]. Probabilities of classes, of two
/// classes that of the second alone; probabilities of labels; numbers in the data's units. Of
/// several positions a row the mean over them.
at::Tensor explained_outputs(const Prediction& prediction, const TargetSpec& target);
/// The names of these numbers.
std::vector<std::string> output_names(const TargetSpec& target);

}  // namespace treadle::explain
