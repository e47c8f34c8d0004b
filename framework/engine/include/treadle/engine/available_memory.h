#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace treadle::engine {

/// Bytes this process may still take before the system swaps or kills: what the machine has left
/// (MemAvailable), cut by the limits of the process's cgroups (version 2; what they hold of files
/// counts as free, as the kernel drops it first). Nothing where the system does not report it.
/// `root` is where /proc and /sys are.
std::optional<std::int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace treadle::engine
