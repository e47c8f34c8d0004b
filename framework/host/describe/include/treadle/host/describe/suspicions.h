#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/host/describe/described_table.h>

/// Leaks let a model look better than it will be on new rows. Validation cannot show them, as its
/// rows leak, too.
namespace treadle::describe {

enum class SuspicionKind {
  kColumn,    ///< one column alone nearly determines the target
  kMissing,   ///< whether a column has a value predicts the target
  kKey,       ///< a number of the row, such as of a ticket, predicts the target
  kRowOrder,  ///< the place of the row predicts the target, and the split goes by it
  kTime       ///< rows have times, and later ones train than those that validate
};

/// "column", "missing", "key", "row_order", "time".
std::string_view name_of(SuspicionKind kind);

/// Something to check; it may be as it should.
struct Suspicion {
  SuspicionKind kind = SuspicionKind::kColumn;
  std::string column;   ///< empty for kRowOrder
  std::string target;   ///< empty for kTime
  std::string measure;  ///< "AUC", "Spearman", "balanced accuracy", "R2", "R2 of ranks", "share"
  double value = 0;
  std::string text;  ///< a sentence with the figure, and what to check
};

// Rare in data without a leak: single columns of breast_cancer reach an AUC of 0.976, of iris a
// balanced accuracy of 0.96.
inline constexpr double kDeterminingAuc = 0.99;
inline constexpr double kDeterminingAccuracy = 0.99;
inline constexpr double kDeterminingSpearman = 0.99;
/// The square of a correlation of 0.99.
inline constexpr double kDeterminingR2 = 0.98;
/// Values that are missing for a reason predict a target weakly; a column that is filled in after
/// the outcome predicts it with hardly an error.
inline constexpr double kTellingAucOfMissing = 0.9;
/// A number of a row should predict nothing at all.
inline constexpr double kTellingAucOfKey = 0.7;
inline constexpr double kTellingSpearmanOfKey = 0.4;
/// And more than chance: so many standard errors. Among 1000 columns of noise, one passes by chance
/// with a probability below 0.001.
inline constexpr double kTellingErrors = 5;
/// Classes with fewer rows, and sets of fewer rows with or without a value, show nothing: of 20 and
/// 20, an AUC of 0.9 by chance has a probability below 1e-6.
inline constexpr std::int64_t kFewestRowsOfClass = 20;
/// Targets with more classes, such as tokens, are left out: memory is rows times classes.
inline constexpr std::int64_t kMostClassesOfTarget = 100;
/// Of a target of numbers.
inline constexpr std::int64_t kFewestRows = 40;
/// A key has another whole number in each row, out of a range of at most this many times the rows,
/// at equal distances, or in the order of the rows. Of so many random numbers out of such a range
/// some would be equal: all differ with a probability of exp(-n / 20), below 0.01 from
/// kFewestRowsOfKey rows on.
inline constexpr double kWidestRangeOfKey = 10;
inline constexpr std::int64_t kFewestRowsOfKey = 100;
/// A validation part in at most so many blocks of consecutive rows is split by the order of rows.
inline constexpr std::int64_t kMostBlocks = 3;
/// A split in time has no validation row that is earlier than a training row; a few may be where
/// times are equal or parts meet.
inline constexpr double kFewEarlierRows = 0.05;

/// The suspicious columns, each with its strongest suspicion per target, in the order of `columns`;
/// then the order of rows. `columns` are the model's inputs, and times beside them.
///
/// Purity is measured on rows that did not choose it (the halves of the rows in turn), so that a
/// category or a number that is unique in each row is no suspicion by itself. Where there is only
/// one input, and for columns made of the target's past, determining the target is the task. Rows
/// with times or such columns are in the order of time, and their order is no suspicion.
std::vector<Suspicion> find_suspicions(std::span<const DescribedColumn> columns,
                                       std::span<const DescribedColumn> targets,
                                       const RowParts& parts);

void to_json(nlohmann::json& json, const Suspicion& suspicion);
void from_json(const nlohmann::json& json, Suspicion& suspicion);

}  // namespace treadle::describe
