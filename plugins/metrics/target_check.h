#pragma once

#include <initializer_list>
#include <string_view>

#include <treadle/core/data/data_spec.h>

namespace treadle::metrics {

/// Throws the DataError that tells a user why `metric` has no meaning for `target`, and which have.
void expect_kind(std::string_view metric, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target);
void expect_classes(std::string_view metric, const TargetSpec& target);
/// The same unless there are two classes.
void expect_two_classes(std::string_view metric, const TargetSpec& target);
void expect_numbers(std::string_view metric, const TargetSpec& target);

}  // namespace treadle::metrics
