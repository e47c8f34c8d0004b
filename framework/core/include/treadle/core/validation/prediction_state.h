#pragma once

#include <treadle/core/components/state_dict.h>
#include <treadle/core/validation/predictions.h>

namespace treadle {

/// A prediction with all its tensors, as state: to be kept or sent.
StateDict state_of(const Prediction& prediction);
/// Throws StorageError when `state` is none.
Prediction prediction_from(const StateDict& state);

}  // namespace treadle
