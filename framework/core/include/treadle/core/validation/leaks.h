#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <treadle/core/validation/cross_validator.h>

namespace treadle {

/// Whether rows would tell a model the targets of others, which are held out.
///
/// A row leaks a held-out target where
/// - it is a sample that touches, with its inputs or its target, a row of the data that is in the
///   target of a held-out sample;
/// - or its label is made of a stretch of time that the label of a held-out row is made of as well,
///   where the data gives the ends of its labels. The label of a row is made of what happens after
///   the row's time, up to its end: (time, end]. Stretches that only meet do not overlap. Rows of
///   different groups have no time in common.
///
/// (M. López de Prado, "Advances in Financial Machine Learning", 2018, chapter 7. Its intervals are
/// closed; here the end of one label may be the time of the next row, which knows it by then.)
class Leaks {
 public:
  /// The first thing that leaks.
  struct Leak {
    std::int64_t row = 0;       ///< that knows too much
    std::int64_t held_out = 0;  ///< whose target it knows
    /// The row of the data that both touch; nothing: their labels overlap in time.
    std::optional<std::int64_t> source = {};
  };

  /// Borrows the request. Costs O(n log n) for n ranges of held-out rows that are samples of one
  /// run, see SampleReader::runs(); of labels with ends, for n held-out rows.
  Leaks(const SplitRequest& request, const RowList& held_out);
  ~Leaks();
  Leaks(const Leaks&) = delete;
  Leaks& operator=(const Leaks&) = delete;

  /// What the row would tell; nothing for most rows.
  std::optional<Leak> of(std::int64_t row) const;
  /// The first of the rows that leaks, and what it would tell. As fast as there are few ranges.
  std::optional<Leak> first_of(const RowList& rows) const;
  /// Those of the rows that leak nothing, likewise.
  RowList without(const RowList& rows) const;

 private:
  class Touched;
  class Overlapping;

  const SplitRequest& request_;
  std::unique_ptr<const Touched> touched_;          // null: rows are no samples
  std::unique_ptr<const Overlapping> overlapping_;  // null: labels have no ends
};

/// The given rows without those that would tell the target of a `held_out` row: purging.
RowList purged(const SplitRequest& request, const RowList& rows, const RowList& held_out);

/// Purges a plan: training rows of a fold of what its validation and test rows hold out, validation
/// rows of what its test rows do, and folds of what the refit is tested on. What splitters in order
/// of time end with, as samples at the border of two parts share rows of the data. Throws DataError
/// when nothing is left of a part.
ValidationPlan purged(const SplitRequest& request, ValidationPlan plan);

}  // namespace treadle
