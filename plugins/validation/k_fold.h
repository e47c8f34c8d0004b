#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `k_fold`: every row validates once. The folds' sizes differ by at most one; stratified, so do
/// the numbers of rows that each class has in them. Without shuffling the
/// folds are those of scikit-learn's KFold and StratifiedKFold.
class KFold final : public CrossValidator {
 public:
  explicit KFold(const Config& config);
  ~KFold() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;
  /// The target to stratify by, if any.
  std::optional<std::size_t> target_in(const SplitRequest& request) const;
  /// The rows that validate in each fold.
  std::vector<RowList> blocks_of(const SplitRequest& request) const;
  std::vector<RowList> stratified_blocks(const SplitRequest& request, std::size_t target) const;

  std::int64_t folds_ = 5;
  bool shuffle_ = true;
  std::optional<bool> stratify_;  // nothing: for classes
  std::optional<std::string> stratify_by_;
  bool refit_ = true;
  TestRows test_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
