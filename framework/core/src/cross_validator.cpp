#include <treadle/core/cross_validator.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

void check_fold(const Fold& fold, std::int64_t rows) {
  TREADLE_EXPECTS(!fold.training.empty(), "fold " + fold.name + " has no training rows");
  TREADLE_EXPECTS(!fold.validation.empty(), "fold " + fold.name + " has no validation rows");
  std::vector<char> seen(static_cast<std::size_t>(rows), 0);
  const auto mark = [&](const std::vector<std::int64_t>& part) {
    for (const std::int64_t row : part) {
      TREADLE_EXPECTS(row >= 0 && row < rows,
                      "fold " + fold.name + " has row " + std::to_string(row) + " of " +
                          std::to_string(rows));
      char& mark = seen[static_cast<std::size_t>(row)];
      TREADLE_EXPECTS(mark == 0, "fold " + fold.name + " uses row " + std::to_string(row) + " twice");
      mark = 1;
    }
  };
  mark(fold.training);
  mark(fold.validation);
}

}  // namespace

ValidationPlan CrossValidator::plan(const SplitRequest& request) const {
  if (request.rows < 2) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " row(s); training and validation need at least one each");
  }
  ValidationPlan plan = do_plan(request);
  TREADLE_EXPECTS(!plan.folds.empty(), "a validation plan has at least one fold");
  for (const Fold& fold : plan.folds) check_fold(fold, request.rows);
  return plan;
}

}  // namespace treadle
