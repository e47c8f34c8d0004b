#include <treadle/host/launch/group_folder.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

namespace treadle::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "treadle-launch-";
constexpr const char* kRunFile = "run";

/// The user's own folder of the session where it is what it should be, as the specification asks.
fs::path folder_for_folders() {
  struct stat about {};
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  if (own != nullptr && own[0] == '/' && ::stat(own, &about) == 0 && S_ISDIR(about.st_mode) &&
      about.st_uid == ::geteuid() && (about.st_mode & 0077) == 0 && ::access(own, W_OK) == 0)
    return own;
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  return error ? fs::path("/tmp") : temporary;
}

}  // namespace

GroupFolder::GroupFolder() : folder_(folder_for_folders(), kKind) {
  if (::mkdir(meeting_in(path()).c_str(), 0700) != 0) {
    throw StorageError(path().string() + ": no folder can be made in it (" +
                       std::generic_category().message(errno) + ")");
  }
}

fs::path GroupFolder::output_of(std::int64_t rank) const {
  return path() / ("rank-" + std::to_string(rank) + ".log");
}

fs::path GroupFolder::recorded_run() const {
  std::ifstream file(path() / kRunFile, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text;
}

fs::path GroupFolder::meeting_in(const fs::path& group_folder) {
  return group_folder / "meeting";
}

void GroupFolder::record_run(const fs::path& group_folder, const fs::path& run) {
  write_file_atomically(group_folder / kRunFile, fs::absolute(run).string());
}

}  // namespace treadle::launch
