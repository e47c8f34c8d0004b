#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/transform.h>

#include "data/evaluated_rows.h"

namespace treadle::internal {

/// The groups (series) that a training's transforms have statistics of (FitsGroups), by their
/// names. Another file numbers its groups in another order; by name each finds its statistics.
///
/// Output stages may need them as well; they take rows of other groups, and rows without groups.
///
/// Empty where no transform and no output stage has any: then nobody needs groups. Borrows the
/// transforms.
class KnownGroups {
 public:
  KnownGroups() = default;
  /// Of fitted transforms. `names` are those of the data they were fitted to; null: numbers.
  KnownGroups(std::span<const Transform* const> transforms, const GroupNames* names);
  /// As save_in() wrote them into a training's preprocessing; `transforms` are its own.
  KnownGroups(std::span<const Transform* const> transforms, const StateDict& preprocessing);

  /// Adds the groups of some rows of the training data, for output stages.
  void add_for_outputs(const EvaluatedRows& data, const RowList& rows);

  bool empty() const { return by_group_.empty() && !are_for_outputs_; }
  void save_in(StateDict& preprocessing) const;

  /// Throws a DataError that names groups of some rows of the training data, unless each transform
  /// takes them.
  void expect_known(const EvaluatedRows& data, const RowList& rows) const;

  /// The group of each row of other data, in the numbers of the training: int64 [N]; undefined
  /// where nobody needs them. Throws as expect_known() does, also for rows without groups.
  at::Tensor numbers_in(const EvaluatedRows& data) const;
  /// Likewise of `rows` rows, by the names of their groups. Throws a UsageError for another number
  /// of names.
  at::Tensor numbers_of(std::span<const std::string> names, std::int64_t rows) const;

 private:
  /// Throws a DataError unless `unknown` is empty or every transform takes other groups.
  void expect_none(const std::vector<std::string>& unknown) const;

  /// Undefined where output stages alone need them, and there are none.
  at::Tensor groups_of(const RowReader& rows) const;

  std::vector<const Transform*> by_group_;
  bool are_for_outputs_ = false;
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::int64_t unknown_ = -1;  // a number that no group has
};

}  // namespace treadle::internal
