#pragma once

#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// Makes each component of a document from its parameters and forgets it: what is wrong with them
/// and no schema can say, only the component knows. Not those that reach outside when they are
/// made: devices, storages, observers. Reads no data. Throws a DocumentError with all that was
/// found.
void try_components(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle::internal
