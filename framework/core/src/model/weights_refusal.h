#pragma once

#include <string>

#include <treadle/core/model/weights.h>

namespace treadle {

/// Why saved weights are not loaded: the difference, and what to do about damaged scales. `what`
/// they do not fit: "the model".
inline std::string refusal_of(const WeightsDifference& difference, const std::string& what) {
  return "saved weights do not fit " + what + "; " + difference.text() +
         (difference.unusable_scales.empty()
              ? ""
              : "; int8 weights cannot be read without their scales: export the model again, or "
                "take an undamaged copy of the file");
}

}  // namespace treadle
