#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/cross_validator.h>

namespace treadle::validation {

/// The target to stratify by: the one called `name`, else the first that has one class per row;
/// nothing without such a target. Throws DataError when `name` is not one class per row.
std::optional<std::size_t> stratified_target(const SplitRequest& request,
                                             const std::optional<std::string>& name);

/// Throws a DataError that lists the targets; `what` is the parameter that needs one,
/// as it stands in the document.
[[noreturn]] void fail_without_classes(const SplitRequest& request, const char* what);

/// The rows of each class in ascending order, by class index. Expects a target of one class per
/// row. Classes without rows are empty lists.
std::vector<std::vector<std::int64_t>> rows_of_classes(const SplitRequest& request,
                                                       std::size_t target);

/// 0 … rows-1 without the given ones, which are in ascending order.
std::vector<std::int64_t> all_rows_but(std::int64_t rows, const std::vector<std::int64_t>& without);

}  // namespace treadle::validation
