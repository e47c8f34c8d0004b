#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/cross_validator.h>

namespace treadle::validation {

/// `hold_out`: one fold. The model trained on it is the result.
class HoldOut final : public CrossValidator {
 public:
  explicit HoldOut(const Config& config);
  ~HoldOut() override;

 private:
  /// Chooses `count` rows to validate on, stratified by a target where it can be.
  using Choose = Fold (*)(const SplitRequest& request, std::int64_t count,
                          std::optional<std::size_t> target);

  ValidationPlan do_plan(const SplitRequest& request) const override;
  std::int64_t count_of(std::int64_t rows) const;

  double fraction_ = 0.2;
  std::optional<std::int64_t> rows_;
  Choose choose_ = nullptr;
  std::optional<std::string> stratify_by_;
};

}  // namespace treadle::validation
