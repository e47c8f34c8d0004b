#pragma once

#include <treadle/core/distributed/communicator.h>
#include <treadle/host/launch/group_report.h>

namespace treadle::cli {

/// Measures a connected communicator of several processes, in about two seconds. All of them call
/// it, and get the same: the time of the slowest. Throws CommunicationError.
launch::GroupReport::Speed measure_group(Communicator& communicator);

}  // namespace treadle::cli
