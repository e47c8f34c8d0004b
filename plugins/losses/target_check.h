#pragma once

#include <string_view>

#include <treadle/core/data_spec.h>

namespace treadle::losses {

/// Throws the DataError that tells a user why `loss` cannot work on `target`, and what would.
void expect_classes(std::string_view loss, const TargetSpec& target);
void expect_numbers(std::string_view loss, const TargetSpec& target);

}  // namespace treadle::losses
