#pragma once

#include <functional>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle::validation {

/// The parameters `test_fraction` and `test_strategy`, which every splitter here has.
class TestRows {
 public:
  /// `stratify_by`: the splitter's parameter of that name.
  TestRows(const Config& config, std::optional<std::string> stratify_by);

  /// Refuses a part to test on where the splitter is told not to train a model on all rows.
  void expect_model(const Config& config, bool refit) const;
  bool has_any() const { return fraction_ > 0; }
  double fraction() const { return fraction_; }
  /// "auto": chosen in the splitter's own way.
  const std::string& strategy() const { return strategy_; }
  bool is_stratified() const { return strategy_ == "stratified"; }

  /// What `split` makes of the rows that are not set aside. `own_way` is the splitter's, for
  /// "auto".
  ValidationPlan plan(const SplitRequest& request, const SetAside& own_way,
                      const std::function<ValidationPlan(const SplitRequest& rest)>& split) const;

 private:
  double fraction_ = 0;
  std::string strategy_;
  std::optional<std::string> stratify_by_;
};

}  // namespace treadle::validation
