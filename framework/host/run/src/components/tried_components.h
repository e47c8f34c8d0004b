#pragma once

#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// Constructs each component of a document and discards it, so that what its constructor refuses
/// beyond its schema is reported. Not those that open files or connections when they are
/// constructed: devices, storages, observers. Reads no data. Throws a DocumentError with all that
/// was found.
void try_components(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle::internal
