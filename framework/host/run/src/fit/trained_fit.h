#pragma once

#include <filesystem>

#include "components/document_components.h"
#include "fit/fit_planner.h"
#include "model/saved_model.h"

namespace treadle::internal {

/// The model that a completed fit of the run in `folder` ended with, from its last checkpoint: also
/// of a fold, whose weights no other file has. Throws StorageError where the checkpoint is gone or
/// damaged, or the fit has not completed.
SavedModel model_of_fit(const DocumentComponents& components, const PlannedFit& planned,
                        const std::filesystem::path& folder);

}  // namespace treadle::internal
