#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// Folds of whole groups: none has rows on both sides of a fold.
class FoldsOfGroups : public CrossValidator {
 public:
  explicit FoldsOfGroups(const Config& config);
  ~FoldsOfGroups() override;

 protected:
  using Groups = std::vector<std::vector<std::int64_t>>;

  std::int64_t folds() const { return folds_; }
  /// 0 … groups-1, in order or, with "shuffle", at random.
  std::vector<std::int64_t> order_of(const SplitRequest& request, std::size_t groups) const;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;
  /// The fold in which each group validates. There are at least as many groups as folds.
  virtual std::vector<std::int64_t> do_fold_of_groups(const SplitRequest& request,
                                                      const Groups& groups) const = 0;

  std::int64_t folds_ = 5;
  bool shuffle_ = true;
  bool refit_ = true;
  TestRows test_;
  OwnSeed seed_;
};

/// `group_k_fold`: the largest groups first, each to the fold with the fewest rows, as
/// scikit-learn's GroupKFold does; so folds differ by the largest group at most.
class GroupKFold final : public FoldsOfGroups {
 public:
  using FoldsOfGroups::FoldsOfGroups;

 private:
  std::vector<std::int64_t> do_fold_of_groups(const SplitRequest& request,
                                              const Groups& groups) const override;
};

/// `stratified_group_k_fold`: groups whose classes are the most uneven first, each to the fold
/// where the classes are then spread the most evenly over the folds, as scikit-learn's
/// StratifiedGroupKFold does.
class StratifiedGroupKFold final : public FoldsOfGroups {
 public:
  explicit StratifiedGroupKFold(const Config& config);
  ~StratifiedGroupKFold() override;

 private:
  std::vector<std::int64_t> do_fold_of_groups(const SplitRequest& request,
                                              const Groups& groups) const override;

  std::optional<std::string> stratify_by_;
};

/// `leave_one_group_out`: a fold for each group, which validates what is trained on all others.
class LeaveOneGroupOut final : public CrossValidator {
 public:
  explicit LeaveOneGroupOut(const Config& config);
  ~LeaveOneGroupOut() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;

  bool refit_ = true;
  TestRows test_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
