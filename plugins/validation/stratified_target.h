#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

namespace treadle::validation {

/// The target to stratify by: the one called `name`, else the first that has one class per row;
/// nothing without such a target. Throws DataError when `name` is not one class per row.
std::optional<std::size_t> stratified_target(const SplitRequest& request,
                                             const std::optional<std::string>& name);

/// The parameter "stratify"; nothing for "auto", which stratifies where it can.
std::optional<bool> stratify_in(const Config& config);

/// Throws a DataError that lists the targets; `what` is the parameter that needs one,
/// as it stands in the document.
[[noreturn]] void fail_without_classes(const SplitRequest& request, const char* what);

}  // namespace treadle::validation
