#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <treadle/core/validation/cross_validator.h>

/// Rows set aside from others: what a splitter needs to offer test rows, and to hold rows out.
namespace treadle {

/// Which rows are set aside.
struct SetAside {
  enum class By {
    kRow,    ///< any
    kClass,  ///< of each class of `target` its share, up to one row
    kGroup,  ///< whole groups
    kTime,   ///< the latest, those of one time together; without timestamps the last
  };

  By by = By::kRow;
  /// False: not at random but the last rows, the last of each class, the last groups.
  bool shuffle = true;
  std::size_t target = 0;  ///< has one class per row; for kClass
};

/// `count` rows of the request, in ascending order or, by time, in that of time. A class keeps one
/// row back. Of groups come as many rows as fit into `count`, and one group at least; of times, the
/// number of rows that comes closest to `count` without cutting one, and one time at least, else a
/// DataError. Expects a
/// count from 1 to rows - 1, and what `how` needs: a target with classes, groups.
RowList rows_set_aside(const SplitRequest& request, std::int64_t count, const SetAside& how);

/// Sets `fraction` of the rows aside for the test and has `split` plan the others, as if there were
/// no more: it gets a request for them alone. The run's model is tested on them: the refit, or the
/// only fold. A fraction of 0 sets nothing aside. Throws DataError when too few rows are left, or
/// the plan has no model to test; what `split` throws also names the rows that it did not get.
///
///     ValidationPlan do_plan(const SplitRequest& request) const override {
///       return plan_with_test_rows(request, test_fraction_, {SetAside::By::kTime},
///                                  [&](const SplitRequest& rest) { return plan_of(rest); });
///     }
ValidationPlan plan_with_test_rows(
    const SplitRequest& request, double fraction, const SetAside& how,
    const std::function<ValidationPlan(const SplitRequest& rest)>& split);

/// A plan for request.part(rows) as one for the request.
void renumber(ValidationPlan& plan, const RowList& rows);

/// The training of the run's model on these rows, for ValidationPlan::refit.
Fold refit_on(RowList training);

/// All rows by their timestamps, those of one time in their own order; without timestamps 0 …
/// rows-1.
RowList rows_in_time(const SplitRequest& request);

/// 0 … rows-1 without the given ones, in ascending order.
RowList all_rows_but(std::int64_t rows, const RowList& without);

/// The rows of both lists, which share none, in ascending order.
RowList rows_of_both(const RowList& a, const RowList& b);

/// The rows of each class in ascending order, by class index. Classes without rows are empty lists.
/// Expects a target with one class per row.
std::vector<std::vector<std::int64_t>> rows_of_classes(const SplitRequest& request,
                                                       std::size_t target);

/// The rows of each group in ascending order; groups in the order of their first rows. Expects
/// groups.
std::vector<std::vector<std::int64_t>> rows_of_groups(const SplitRequest& request);

}  // namespace treadle
