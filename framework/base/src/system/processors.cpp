#include <treadle/base/system/processors.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace treadle {
namespace {

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// CPUs the cgroup may use at once, 0 without a limit. cgroup v2: "max 100000" or "150000 100000"
/// (microseconds of CPU per period), in the process's own group.
double cgroup_quota() {
  std::ifstream membership("/proc/self/cgroup");
  std::string line;
  std::string group;
  while (std::getline(membership, line)) {
    if (line.rfind("0::", 0) == 0)
      group = line.substr(3);
  }
  for (const std::string& path :
       {"/sys/fs/cgroup" + group + "/cpu.max", std::string("/sys/fs/cgroup/cpu.max")}) {
    std::ifstream file(path);
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0)
      return std::stod(quota) / period;
  }
  return 0;
}

}  // namespace

int available_cores() {
  const int cores = affinity_cores();
  const double quota = cgroup_quota();
  if (quota <= 0)
    return cores;
  return std::clamp(static_cast<int>(std::ceil(quota)), 1, cores);
}

}  // namespace treadle
