#pragma once

#include <filesystem>

#include "chapters.h"

namespace treadle::benchmarks {

/// Measures a workload that lies in `folder` through this build's runner and another's, in turn,
/// and prints the ratio of their times (now / before) with the interval of its median. True when it
/// became slower: all of the interval is above 1.01.
bool measure_against(const Workload& workload, const std::filesystem::path& folder,
                     const Programs& now, const Programs& before, const Effort& effort);

}  // namespace treadle::benchmarks
