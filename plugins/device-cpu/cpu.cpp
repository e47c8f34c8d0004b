#include "cpu.h"

#include <fstream>
#include <string>

namespace treadle::device_cpu {
namespace {

/// The value behind the first "key : value" of a file of /proc; empty where there is none.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0)
      continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// "1234 kB" in bytes.
std::int64_t proc_bytes(const char* file, const std::string& key) {
  const std::string value = proc_value(file, key);
  return value.empty() ? 0 : std::stoll(value) * 1024;
}

}  // namespace

FoundDevices Cpu::do_find() const {
  const std::string name = proc_value("/proc/cpuinfo", "model name");  // not on every architecture
  return {.devices = {{.device = c10::kCPU,
                       .name = name.empty() ? "CPU" : name,
                       .memory_bytes = proc_bytes("/proc/meminfo", "MemTotal")}}};
}

DeviceMemory Cpu::do_memory(c10::Device) const {
  const std::int64_t resident = proc_bytes("/proc/self/status", "VmRSS");
  return {.in_use = resident,
          .peak = proc_bytes("/proc/self/status", "VmHWM"),
          .reserved = resident,
          .available = proc_bytes("/proc/meminfo", "MemAvailable")};
}

void Cpu::do_reset_peak(c10::Device) const {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): sets VmHWM to VmRSS
}

}  // namespace treadle::device_cpu
