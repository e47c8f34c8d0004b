#pragma once

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `leave_one_out`: a fold for each row, which validates what is trained on all others.
class LeaveOneOut final : public CrossValidator {
 public:
  explicit LeaveOneOut(const Config& config);
  ~LeaveOneOut() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;

  bool refit_ = true;
  TestRows test_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
