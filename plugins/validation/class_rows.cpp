#include "class_rows.h"

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::validation {

std::vector<std::vector<std::int64_t>> rows_of_classes(const SplitRequest& request) {
  TREADLE_EXPECTS(request.targets.defined() && request.targets.scalar_type() == at::kLong &&
                      request.targets.dim() == 1 && request.targets.size(0) == request.rows,
                  "targets of classes are int64 [rows]");
  const at::Tensor targets = request.targets.contiguous();
  const auto* const classes = targets.data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> rows(
      static_cast<std::size_t>(request.target.class_count()));
  for (std::int64_t row = 0; row < request.rows; ++row)
    rows.at(static_cast<std::size_t>(classes[row])).push_back(row);
  return rows;
}

void expect_classes(const SplitRequest& request, const char* what) {
  if (request.target.kind != TargetKind::kClasses) {
    throw DataError(std::string("validation has ") + what +
                    ", which needs classes, but the target " + quote_text(request.target.name) +
                    " is numbers");
  }
}

std::vector<std::int64_t> all_rows_but(std::int64_t rows,
                                       const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> rest;
  rest.reserve(static_cast<std::size_t>(rows) - without.size());
  auto next = without.begin();
  for (std::int64_t row = 0; row < rows; ++row) {
    if (next != without.end() && *next == row) {
      ++next;
    } else {
      rest.push_back(row);
    }
  }
  return rest;
}

}  // namespace treadle::validation
