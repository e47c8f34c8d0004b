#pragma once

#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// What is in the columns of the data that the document names, whatever else the document says.
/// Throws a UsageError where the data component cannot find out, and a DataError where the file is
/// no table.
TableProfile profile_data(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle
