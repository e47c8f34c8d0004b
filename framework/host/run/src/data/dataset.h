#pragma once

#include <filesystem>
#include <memory>

#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/host/run/runtime.h>

#include "data/evaluated_rows.h"

namespace treadle::internal {

/// The data of a run. Opened once and shared by all its fits, whatever else their documents say.
/// Immutable: any thread.
class Dataset {
 public:
  /// Opens what the document names. Throws DataError where it cannot train.
  Dataset(const Runtime& runtime, const ResolvedWorkflow& workflow);
  /// Of a model trained earlier: what its data looked like, without any rows.
  explicit Dataset(DataSpec spec) : spec_(std::move(spec)) {}

  const DataSpec& spec() const { return spec_; }
  /// Whether the document left open what kind of values the targets are.
  bool has_guessed_task() const { return has_guessed_task_; }
  bool has_rows() const { return rows_ != nullptr; }
  /// Whether it can only be read in order.
  bool is_stream() const { return head_ != nullptr; }

  // Expect rows.
  const DataProvider& provider() const { return *provider_; }
  /// What is split and trained on: the data's rows, or the samples made of them, or the first rows
  /// of a stream.
  const RowReader& rows() const { return *rows_; }
  /// Null: a sample is a row.
  const SampleReader* samples() const { return samples_.get(); }
  /// The data's own rows, which samples are made of.
  const RowReader& source() const { return *source_; }
  /// Null: the data has no columns of text.
  const SourceColumns* columns() const { return columns_; }
  EvaluatedRows evaluated() const;
  /// How many rows there are; DataProvider::kEndless where nobody knows.
  std::int64_t row_count() const;

  // Expect a stream. The first of rows() validate, the others are the first that train.
  std::int64_t validation_rows() const { return validation_rows_; }
  /// One fold, over rows().
  ValidationPlan plan_of_stream() const;

  /// Throws UsageError unless `workflow` asks for the data of `opened`, in the same dtype.
  static void expect_same(const ResolvedWorkflow& opened, const ResolvedWorkflow& workflow);

 private:
  void open(const Runtime& runtime, const ResolvedWorkflow& workflow);
  void open_stream(const Runtime& runtime, const ResolvedWorkflow& workflow);

  std::unique_ptr<DataProvider> provider_;
  std::unique_ptr<SampleReader> samples_;
  std::unique_ptr<MatrixRows> head_;  // the first rows of a stream
  std::int64_t validation_rows_ = 0;  // of these
  const RowReader* rows_ = nullptr;
  const RowReader* source_ = nullptr;
  const SourceColumns* columns_ = nullptr;
  DataSpec spec_;
  bool has_guessed_task_ = false;
};

/// SourceHash of the data; empty where it does not know.
std::string source_hash_of(const DataProvider& data);

/// The samples that the document makes of `rows`, which must outlive them; null where it makes
/// none.
std::unique_ptr<SampleReader> make_samples(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                           const RowReader& rows);

/// Whether a component's schema lists the ending of the file's name in x-treadle-extensions.
bool claims_file(const nlohmann::json& schema, const std::string& file);

/// A saved run's data provider for other data. A file replaces the parameter that the component's
/// schema names in x-treadle-source; one with the ending of another format that keeps the same kind
/// of state is read as that. A JSON object has parameters that replace those of the run:
/// `{"query": "SELECT …"}`, also with another `use`.
std::unique_ptr<DataProvider> make_data_for(const Runtime& runtime,
                                            const ResolvedWorkflow& workflow,
                                            const std::string& data);

}  // namespace treadle::internal
