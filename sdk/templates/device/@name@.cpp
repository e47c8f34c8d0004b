#include <treadle/sdk.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

/// A CPU whose memory is limited, as in a container: the devices are what libtorch calls the CPU,
/// and their memory is what the control group of the process (cgroup v2) may use.
///
/// For an accelerator: return its c10::Device with an index for each, page-locked copies in
/// do_staged(), the numbers of its caching allocator in do_memory(), and wait for it in
/// do_synchronize().
class @Name@ final : public treadle::DeviceBackend {
 public:
  explicit @Name@(const treadle::Config&) {}

 private:
  treadle::FoundDevices do_find() const override {
    if (!std::filesystem::exists("/proc/self/status"))
      return {.devices = {}, .why_none = "there is no /proc to read; mount it"};
    return {.devices = {{.device = c10::kCPU,
                         .name = "the CPU of this container",
                         .memory_bytes = number_in("/sys/fs/cgroup/memory.max")}}};
  }

  treadle::DeviceMemory do_memory(c10::Device) const override {
    const std::int64_t used = kilobytes("VmRSS:");
    const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
    return {.in_use = used,
            .peak = kilobytes("VmHWM:"),
            .reserved = used,
            .available = limit > used ? limit - used : 0};
  }

  void do_reset_peak(c10::Device) const override {
    std::ofstream("/proc/self/clear_refs") << "5";
  }

  // The CPU has done its work when an operator returns.
  void do_synchronize(c10::Device) const override {}

  /// 0 where there is no such file, or no limit in it.
  static std::int64_t number_in(const char* file) {
    std::int64_t number = 0;
    return std::ifstream(file) >> number ? number : 0;
  }

  /// A line of /proc/self/status, in bytes.
  static std::int64_t kilobytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      std::int64_t kilobytes = 0;
      if (word == key && status >> kilobytes)
        return kilobytes * 1024;
    }
    return 0;
  }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
