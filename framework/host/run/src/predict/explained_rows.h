#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include <treadle/host/record/run_result.h>
#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "data/dataset.h"

namespace treadle::internal {

/// Whether a run of the document explains its model: the key "explain".
bool explains(const ResolvedWorkflow& workflow);

/// Throws a DataError, before anything is trained, where explain_own_rows() would. Expects a plan.
void expect_explainable(const DocumentComponents& components);

/// The reasons of the run in `folder` on the rows that it held out: its fits have completed, its
/// model and its outputs are written. `workflow`: the one that the run's model was made by.
nlohmann::json explain_own_rows(const Runtime& runtime, const std::filesystem::path& folder,
                                const ResolvedWorkflow& workflow, const Dataset& dataset,
                                const RunResult& result);

}  // namespace treadle::internal
