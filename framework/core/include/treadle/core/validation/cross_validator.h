#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/base/random.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/data/target_spec.h>

namespace treadle {

/// The rows to split: of the data, or samples made of them. Made by the host.
struct SplitRequest {
  std::int64_t rows = 0;
  std::vector<TargetSpec> targets;
  /// One per target, as RowReader::targets(); undefined where a row has several positions, by which
  /// no split can go.
  std::vector<at::Tensor> target_values;
  at::Tensor groups;      ///< int64 [rows], or undefined
  at::Tensor timestamps;  ///< float64 [rows], or undefined
  at::Tensor label_ends;  ///< float64 [rows], as RowReader::label_ends()
  RandomStreams random{0};
  /// Which rows of the data each of the rows touches; null: they are the data's own and touch
  /// themselves. Valid in the call, as all pointers here.
  const SampleReader* samples = nullptr;
  /// The data's own rows; null: nothing more is known of them than stands here.
  const RowReader* data = nullptr;
  /// The columns of the data as texts; null: it has none.
  const SourceColumns* columns = nullptr;
  /// Of a part of other rows, see part(): the number of each row among them. Empty: 0, 1, …
  RowList numbers = {};

  /// The request for some of the rows: row i of it is rows[i] of this one.
  SplitRequest part(const RowList& rows) const;
  /// The rows of the data that a row touches.
  SourceRows source_rows(std::int64_t row) const;
  /// For messages: the row as its reader describes it, or "row 17".
  std::string describe(std::int64_t row) const;
};

/// The rows of one training. Lists are ascending unless they are ordered by time.
struct Fold {
  std::string name;  ///< of its fit, see FitId::is_part()
  RowList training;
  RowList validation;  ///< they may choose: the epoch, the document
  /// Rows that only measure: the model is tested on them once, after its training. Of several folds
  /// all have them or none; where they do, they are what the folds are judged by.
  RowList test = {};
  /// Training rows that the host sets aside for output stages to learn from (OutputStage): they are
  /// in none of the other lists. No validator gives any.
  RowList outputs = {};
  /// The fold before it, by index, whose final weights the training begins with: a warm start.
  std::optional<std::size_t> starts_from = {};
  /// Folds of the training rows that settle what the training leaves open, such as its number of
  /// epochs: nested cross-validation. Such a fold has no validation rows of its own, and is tested.
  std::vector<Fold> inner = {};
};

struct ValidationPlan {
  std::vector<Fold> folds;
  /// The training of the run's model, "final", after the folds: usually of all rows, without
  /// validation rows. Nothing with one fold: that fold's model is the run's. Nothing with several:
  /// there is no single model.
  std::optional<Fold> refit = std::nullopt;
};

/// Decides which rows train, which validate and which test. Stateless: the plan is a function of
/// the request.
class CrossValidator : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.validation/0";

  ~CrossValidator() override;

  /// Checks what every plan must satisfy: at least one fold; no row in two parts of a fold or
  /// outside the data; no empty part; the refit's test rows in no fold. Throws DataError with the
  /// reason when the data cannot be split so (more folds than rows, a class with fewer rows than
  /// folds), and when a target leaks, see leaks.h: out of the validation rows of a fold into its
  /// training rows, or out of test rows into either.
  ValidationPlan plan(const SplitRequest& request) const;

  /// How many rows of a stream validate: its first ones, which are kept in memory; those after them
  /// train. Rows that have not been read cannot be split, so few validators support streams; the
  /// others throw DataError. At least 1.
  std::int64_t first_rows_of_stream() const;

 private:
  virtual ValidationPlan do_plan(const SplitRequest& request) const = 0;
  virtual std::int64_t do_first_rows_of_stream() const;
};

}  // namespace treadle
