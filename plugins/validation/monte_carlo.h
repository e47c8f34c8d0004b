#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `monte_carlo`: rows held out at random, several times, each time anew: scikit-learn's
/// ShuffleSplit, StratifiedShuffleSplit and GroupShuffleSplit.
class MonteCarlo final : public CrossValidator {
 public:
  explicit MonteCarlo(const Config& config);
  ~MonteCarlo() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;
  SetAside how(const SplitRequest& request) const;

  std::int64_t splits_ = 10;
  Size validation_size_;
  std::optional<Size> train_size_;
  std::optional<bool> stratify_;  // nothing: for classes
  std::optional<std::string> stratify_by_;
  bool keep_groups_ = false;
  bool refit_ = true;
  TestRows test_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
