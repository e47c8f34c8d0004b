#pragma once

#include <treadle/core/distributed/communicator.h>

#include "components/document_components.h"

namespace treadle::internal {

/// Finds the batch size that the document leaves open ("auto"): the largest power of two of rows,
/// no more than the first fold trains on, of which three training steps and an evaluation fit into
/// the memory of the device. Beginning with 32, it is doubled until one does not fit, or halved
/// until one does.
///
/// On a device the memory is its allocator's; on a CPU a step fits where the process then takes no
/// more than 80 % of what was available, and twice as much is not tried unless it would.
/// Other trainings at once are not thought of: they wait until there is memory for them.
///
/// Expects the plan. Does nothing where the size is given. Throws what a training throws; a
/// TrainingError where not even one row fits. Inside ThreadBudget::run().
void find_batch_size(DocumentComponents& components);

/// The same for processes that train together: rank 0 finds it for all.
void find_batch_size_together(DocumentComponents& components, Communicator& communicator);

}  // namespace treadle::internal
