#pragma once

#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/describe/data_description.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// Describes the data of a document as a run reads and splits it: `workflow-runner data describe`.
/// Of samples, such as windows, the rows that they are made of. Of a file also the
/// columns that are no inputs. Trains nothing and writes nothing.
///
/// Throws the errors that a run would end with before its training: a DocumentError, a DataError.
describe::DataDescription describe_data(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle
