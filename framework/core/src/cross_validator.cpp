#include <treadle/core/cross_validator.h>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

/// What is wrong with the fold, to go on after "it returned a plan in which"; empty when nothing
/// is.
std::string defect_of(const Fold& fold, std::int64_t rows) {
  if (fold.training.empty())
    return fold.name + " has no training rows";
  if (fold.validation.empty())
    return fold.name + " has no validation rows";
  std::vector<char> seen(static_cast<std::size_t>(rows), 0);
  for (const std::vector<std::int64_t>* part : {&fold.training, &fold.validation}) {
    for (const std::int64_t row : *part) {
      if (row < 0 || row >= rows) {
        return fold.name + " has row " + std::to_string(row) + " of " + std::to_string(rows);
      }
      char& mark = seen[static_cast<std::size_t>(row)];
      if (mark != 0)
        return fold.name + " uses row " + std::to_string(row) + " twice";
      mark = 1;
    }
  }
  return "";
}

}  // namespace

ValidationPlan CrossValidator::plan(const SplitRequest& request) const {
  if (request.rows < 2) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " row(s); training and validation need at least one each");
  }
  ValidationPlan plan = call_plugin(*this, "plan", [&] { return do_plan(request); });
  if (plan.folds.empty())
    refuse_result(*this, "plan", "returned a plan without folds");
  for (const Fold& fold : plan.folds) {
    if (const std::string defect = defect_of(fold, request.rows); !defect.empty()) {
      refuse_result(*this, "plan", "returned a plan in which " + defect);
    }
  }
  return plan;
}

}  // namespace treadle
