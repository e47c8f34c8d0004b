#pragma once

#include <filesystem>
#include <span>

namespace treadle {

/// The work of treadle-probe: loads one plugin after the other into this process and reports on
/// kProbeChannel, see plugin_probe.h. Made for a process that is thrown away afterwards.
void answer_probe(std::span<const std::filesystem::path> files);

/// The same for one plugin, which is looked at from all sides.
void answer_inspection(const std::filesystem::path& file);

/// Reports the machine and libraries of this process.
void answer_about_host();

}  // namespace treadle
