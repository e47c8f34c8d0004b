#pragma once

#include <cstdint>
#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `purged`: consecutive blocks of time steps; each validates a model trained on the steps before
/// and after it, but those whose labels overlap its own, those within `gap` steps of it, and those
/// within `embargo` steps after its labels end. Training rows lie after validation rows, too, which
/// is why the embargo: their inputs may reflect what the labels were made of.
///
/// M. López de Prado, "Advances in Financial Machine Learning", 2018, section 7.4. The blocks are
/// those of scikit-learn's KFold without shuffling.
class PurgedKFold final : public CrossValidator {
 public:
  explicit PurgedKFold(const Config& config);
  ~PurgedKFold() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;

  std::int64_t folds_ = 5;
  std::int64_t gap_ = 0;
  std::optional<Size> embargo_;
  bool refit_ = true;
  TestRows test_;
};

}  // namespace treadle::validation
