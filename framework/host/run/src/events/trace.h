#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <treadle/core/history/timeline.h>
#include <treadle/host/record/run_result.h>

namespace treadle::internal {

/// Where the time of a run went, for its result: seconds by phase over all threads, what of the
/// workers' time was used, how many pieces a step was cut into, and how many training rows went
/// through in a second of the whole run. The phases "replay" and "waiting" are there for a run on a
/// device only.
TimeResult time_result(const Timeline& timeline, int workers, std::size_t shards, bool has_device);

/// A run's use of its device, for its result: copies, waits, memory, and how much of the
/// epochs' time the device had no step to work on.
DeviceResult device_result(const Timeline& timeline, const std::string& device);

/// The timeline's events in Chrome's trace format, which chrome://tracing and ui.perfetto.dev show:
/// one line a thread, and for a run on a device one for its steps there, with memory, copies and
/// waits as counters. `hosts`: of the processes that train together, by rank; the metadata has
/// them, and that the trace is of rank 0. Throws StorageError when it cannot be written.
void write_trace(const Timeline& timeline, const std::filesystem::path& path,
                 const std::vector<std::string>& hosts = {});

}  // namespace treadle::internal
