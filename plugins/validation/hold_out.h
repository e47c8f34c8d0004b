#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `hold_out`: one fold. The model trained on it is the result.
class HoldOut final : public CrossValidator {
 public:
  explicit HoldOut(const Config& config);
  ~HoldOut() override;

 private:
  /// How rows are chosen, stratified by a target where there is one.
  using Choose = SetAside (*)(const SplitRequest& request, std::optional<std::size_t> target);

  ValidationPlan do_plan(const SplitRequest& request) const override;
  std::int64_t do_first_rows_of_stream() const override;
  std::int64_t count_of(std::int64_t all, std::int64_t rest) const;

  double fraction_ = 0.2;
  std::optional<std::int64_t> rows_;
  Choose choose_ = nullptr;
  bool takes_any_ = false;  // "auto"
  std::optional<std::string> stratify_by_;
  TestRows test_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
