#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include <treadle/core/training/structure_search.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The document of the network that a search of its structure chose, trained in the usual way: each
/// builder whose structure was searched has what was chosen, the loop is the standard one, and
/// groups of the optimizer that held nothing but alphas are gone.
///
/// Throws a TrainingError where the model has a structure that no builder of the document derives,
/// such as one whose layers stand in the document themselves.
nlohmann::json derived_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                std::span<const StructureRecord> structures);

}  // namespace treadle::internal
