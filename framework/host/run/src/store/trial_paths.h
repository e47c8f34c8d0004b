#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace treadle::internal {

// Paths of the fits of trials: "trials/7", or of several folds "trials/7/fold-2".

/// The first part of all of them.
inline constexpr std::string_view kTrialsGroup = "trials";

std::string trial_path(std::int64_t number);
/// 7 of "trials/7/fold-2"; nothing where the fit is of no trial.
std::optional<std::int64_t> trial_in_path(std::string_view fit);

}  // namespace treadle::internal
