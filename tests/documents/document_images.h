#pragma once

#include <nlohmann/json.hpp>

#include "drawing.h"

/// Small image files for random documents, and the parameters that read them.
namespace treadle::testing {

/// Writes images in folders of classes, or beside a list, and returns parameters of the component
/// "images" that suit them.
nlohmann::json image_parameters(Drawing& drawing);
/// Writes IDX files and returns parameters of the component "idx" that suit them.
nlohmann::json idx_parameters(Drawing& drawing);

}  // namespace treadle::testing
