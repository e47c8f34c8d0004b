#include "leave_one_out.h"

#include <string>
#include <utility>

namespace treadle::validation {

LeaveOneOut::LeaveOneOut(const Config& config)
    : refit_(config.get_or("refit", true)), test_(config, std::nullopt), seed_(config) {
  test_.expect_model(config, refit_);
}

LeaveOneOut::~LeaveOneOut() = default;

ValidationPlan LeaveOneOut::do_plan(const SplitRequest& request) const {
  return test_.plan(seed_.in(request), {SetAside::By::kRow}, [&](const SplitRequest& rest) {
    ValidationPlan plan;
    for (std::int64_t row = 0; row < rest.rows; ++row) {
      Fold fold;
      fold.name = "fold-" + std::to_string(row + 1);
      fold.validation = {row};
      fold.training = all_rows_but(rest.rows, {row});
      plan.folds.push_back(std::move(fold));
    }
    if (refit_)
      plan.refit = refit_on(all_rows_but(rest.rows, {}));
    return plan;
  });
}

}  // namespace treadle::validation
