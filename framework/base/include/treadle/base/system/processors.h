#pragma once

namespace treadle {

/// Cores this process may use: the affinity mask, cut by the cgroup's CPU quota (rounded up), at
/// least 1.
int available_cores();

}  // namespace treadle
