#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/host/describe/clusters.h>
#include <treadle/host/describe/column_summary.h>
#include <treadle/host/describe/correlations.h>
#include <treadle/host/describe/described_table.h>
#include <treadle/host/describe/drift.h>
#include <treadle/host/describe/suspicions.h>

namespace treadle::describe {

/// More rows than this are represented by a sample: a few seconds are enough for it.
inline constexpr std::int64_t kMostDescribedRows = 50000;
/// Of more number columns the first are correlated and clustered.
inline constexpr std::size_t kMostCorrelatedColumns = 100;
/// Of more category columns the first are compared with each other and with numbers.
inline constexpr std::size_t kMostAssociatedCategories = 30;
/// Pairs at least so strong are listed.
inline constexpr double kStrongPair = 0.8;
inline constexpr std::size_t kMostStrongPairs = 100;
/// Of samples and clusters.
inline constexpr std::uint64_t kDescriptionSeed = 0;

/// Statistics of data and suspected leaks, computed before training.
struct DataDescription {
  std::int64_t rows = 0;       ///< of the data
  std::int64_t described = 0;  ///< fewer: a uniform sample, drawn with kDescriptionSeed
  std::vector<ColumnSummary> inputs;
  std::vector<ColumnSummary> targets;
  std::vector<ColumnSummary> others;
  // Of inputs and targets that are numbers.
  CorrelationMatrix pearson;
  CorrelationMatrix spearman;
  std::vector<CorrelatedPair> strong_pairs;  ///< by Spearman, at least kStrongPair
  // Of inputs and targets; undefined ones are left out; the strongest first.
  std::vector<CorrelatedPair> cramers_v;          ///< two columns of categories
  std::vector<CorrelatedPair> correlation_ratio;  ///< first: categories, second: numbers
  Clusters clusters;                              ///< of the inputs that are numbers
  // Of the first fold; nothing without one.
  std::optional<std::int64_t> training_rows;
  std::optional<std::int64_t> validation_rows;
  std::vector<ColumnDrift> drift;  ///< of inputs, targets and times
  Duplicates duplicates;           ///< of inputs; none where some are not described
  std::vector<Suspicion> suspicions;
  std::vector<std::string> notes;  ///< limits that were reached, as sentences
};

/// Some seconds for kMostDescribedRows rows of 100 columns.
DataDescription describe(const DescribedTable& table);

void to_json(nlohmann::json& json, const DataDescription& description);
/// Gives the description that was stored. Throws a StorageError that names the key on anything
/// else.
DataDescription description_from_json(const nlohmann::json& stored);

}  // namespace treadle::describe
