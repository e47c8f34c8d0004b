#pragma once

#include <cstdint>
#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/cross_validator.h>

namespace treadle::validation {

/// `hold_out`: one fold. The model trained on it is the result.
class HoldOut final : public CrossValidator {
 public:
  explicit HoldOut(const Config& config);
  ~HoldOut() override;

 private:
  /// Chooses `count` rows to validate on.
  using Choose = Fold (*)(const SplitRequest& request, std::int64_t count);

  ValidationPlan do_plan(const SplitRequest& request) const override;
  std::int64_t count_of(std::int64_t rows) const;

  double fraction_ = 0.2;
  std::optional<std::int64_t> rows_;
  Choose choose_ = nullptr;
};

}  // namespace treadle::validation
