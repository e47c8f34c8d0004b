#pragma once

#include <string>
#include <vector>

#include <treadle/core/precision/precision.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

#include "data/dataset.h"
#include "resources/run_device.h"

namespace treadle::internal {

/// A document in which nothing is open: choices of the machine and the data are written out. A run
/// of it has nothing left to choose, and gives the same bits.
struct SettledWorkflow {
  ResolvedWorkflow workflow;
  Precision precision;
  RunDevice device;
  std::vector<std::string> choices;  ///< made for the user, as sentences
};

/// Device, task, loss, metrics and shards of the document, for the data of the run. Throws a
/// DocumentError where what it has does not fit the data or the device.
SettledWorkflow settle(const Runtime& runtime, ResolvedWorkflow workflow, const Dataset& dataset);

}  // namespace treadle::internal
