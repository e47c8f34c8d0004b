#pragma once

#include <initializer_list>
#include <string_view>

#include <treadle/core/data/data_spec.h>

namespace treadle::losses {

/// Throws the DataError that tells a user why `loss` cannot work on `target`, and which losses can.
void expect_kind(std::string_view loss, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target);

/// The same for fewer than two classes.
void expect_two_classes(std::string_view loss, const TargetSpec& target);

}  // namespace treadle::losses
