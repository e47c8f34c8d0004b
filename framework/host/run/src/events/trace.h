#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include <treadle/core/timeline.h>

namespace treadle::internal {

/// Where the time of a run went, for its result: seconds by phase over all threads, what of the
/// workers' time was used, how many pieces a step was cut into, and how many training rows went
/// through in a second of the whole run.
nlohmann::json time_record(const Timeline& timeline, int workers, std::size_t shards);

/// The timeline's events in Chrome's trace format, which chrome://tracing and ui.perfetto.dev show:
/// one line a thread. Throws StorageError when it cannot be written.
void write_trace(const Timeline& timeline, const std::filesystem::path& path);

}  // namespace treadle::internal
