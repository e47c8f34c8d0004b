#include <treadle/engine/available_memory.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace treadle::engine {
namespace {

namespace fs = std::filesystem;

/// The number after `key` in a file of "key number" lines, which may have a colon and a unit.
std::optional<std::int64_t> number_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) == 0)
      return std::stoll(line.substr(key.size()));
  }
  return std::nullopt;
}

/// "max" is no number, as a file that is not there.
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number)
    return number;
  return std::nullopt;
}

/// The process's cgroup of version 2: "/user.slice/app".
std::string own_group(const fs::path& root) {
  std::ifstream membership(root / "proc/self/cgroup");
  for (std::string line; std::getline(membership, line);) {
    if (line.rfind("0::/", 0) == 0)
      return line.substr(4);
  }
  return "";
}

std::optional<std::int64_t> left_in(const fs::path& group) {
  const auto limit = number_in(group / "memory.max");
  const auto used = number_in(group / "memory.current");
  if (!limit || !used)
    return std::nullopt;
  const std::int64_t of_files = number_of(group / "memory.stat", "inactive_file ").value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + of_files);
}

}  // namespace

std::optional<std::int64_t> available_memory_bytes(const fs::path& root) {
  std::optional<std::int64_t> least;
  const auto consider = [&](std::optional<std::int64_t> bytes) {
    if (bytes && (!least || *bytes < *least))
      least = bytes;
  };
  if (const auto kilobytes = number_of(root / "proc/meminfo", "MemAvailable:"))
    consider(*kilobytes * 1024);
  // A group has the limits of those it lies in, up to the one that is mounted.
  const fs::path mounted = root / "sys/fs/cgroup";
  fs::path group = own_group(root);
  for (; !group.empty(); group = group.parent_path())
    consider(left_in(mounted / group));
  consider(left_in(mounted));
  return least;
}

}  // namespace treadle::engine
