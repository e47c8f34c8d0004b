#pragma once

#include <cstdint>
#include <vector>

#include <treadle/core/cross_validator.h>

namespace treadle::validation {

/// The rows of each class in ascending order, by class index. Expects a target of classes. Classes
/// without rows are empty lists.
std::vector<std::vector<std::int64_t>> rows_of_classes(const SplitRequest& request);

/// Throws DataError when "stratify" was asked for and the target is not classes; `what` is the
/// parameter as it stands in the document.
void expect_classes(const SplitRequest& request, const char* what);

/// 0 … rows-1 without the given ones, which are in ascending order.
std::vector<std::int64_t> all_rows_but(std::int64_t rows, const std::vector<std::int64_t>& without);

}  // namespace treadle::validation
