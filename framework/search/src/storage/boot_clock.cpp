#include <treadle/search/storage/boot_clock.h>

#include <ctime>
#include <fstream>

#include <treadle/base/error.h>

namespace treadle::storages {
namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

const std::string& this_boot() {
  static const std::string id = [] {
    std::string line;
    if (!std::getline(std::ifstream(kBootId), line) || line.empty())
      throw StorageError(std::string(kBootId) +
                         ": cannot be read, so leases of an earlier start of this machine cannot "
                         "be told from those of this one; use the storage \"postgresql\"");
    return line;
  }();
  return id;
}

}  // namespace

BootTime BootTime::now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return {this_boot(), static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec)};
}

}  // namespace treadle::storages
