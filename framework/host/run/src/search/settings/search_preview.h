#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "search/settings/search_settings.h"

namespace treadle::internal {

/// What a search will try, and how much of it its budgets allow: its first trials make a few steps
/// each. `components` are those of the document itself, with a plan. `base_bytes`: what the process
/// takes without a training. Throws as Objectives do.
nlohmann::json search_preview(const Runtime& runtime, const SearchSettings& search,
                              const DocumentComponents& components, const Dataset& dataset,
                              int workers, std::int64_t base_bytes);

}  // namespace treadle::internal
