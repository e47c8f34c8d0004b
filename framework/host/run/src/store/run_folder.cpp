#include <treadle/host/run/run_folder.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <regex>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "store/trial_paths.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

/// -1 with errno when the folder cannot be locked.
int lock_folder(const fs::path& folder) {
  const int descriptor = ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    throw StorageError(folder.string() + ": not writable: " + std::strerror(errno) +
                       "; make the folder writable, or copy the run to another place");
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw StorageError(folder.string() + ": another process is working on this run");
  }
  return descriptor;
}

/// What a kill in the middle of a write leaves: temporary files of write_file_atomically() and of
/// write_state_folder().
bool is_leftover(const std::string& name) {
  static const std::regex kTemporary(R"(.+\.part-\d+-\d+|.+\.tmp)");
  return std::regex_match(name, kTemporary);
}

/// Not of trials that other processes may be writing.
void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  const bool is_shared = fs::exists(RunFolder::study_token_of(folder), error);
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_shared && entry->path().filename() == "trials") {
      entry.disable_recursion_pending();
      continue;
    }
    if (!is_leftover(entry->path().filename().string()))
      continue;
    found.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  for (const fs::path& path : found)
    fs::remove_all(path, error);
}

}  // namespace

RunFolder RunFolder::create(const fs::path& output, const std::string& name) {
  std::error_code error;
  fs::create_directories(output, error);
  if (error) {
    throw StorageError(output.string() + ": the folder for runs cannot be made: " +
                       error.message() + "; choose another with --output");
  }
  const std::string wanted = name + "-" + time_stamp();
  for (int number = 1; number <= 10000; ++number) {
    const fs::path folder = output / (number == 1 ? wanted : wanted + "-" + std::to_string(number));
    // mkdir, unlike a look before, cannot be beaten to it by another process.
    if (mkdir(folder.c_str(), 0777) == 0)
      return RunFolder(folder, lock_folder(folder));
    if (errno != EEXIST) {
      throw StorageError(folder.string() + ": the run's folder cannot be made: " +
                         std::strerror(errno) + "; choose another place with --output");
    }
  }
  throw StorageError(output.string() + ": there are 10000 runs of this second already");
}

RunFolder RunFolder::open(const fs::path& folder) {
  if (!fs::exists(folder / "workflow.json")) {
    throw StorageError(folder.string() + ": is not the folder of a run: it has no workflow.json");
  }
  const fs::path path = folder.lexically_normal();
  RunFolder opened(path, lock_folder(path));
  remove_leftovers(path);  // nobody else is writing: the lock is ours
  return opened;
}

RunFolder RunFolder::lock(const fs::path& folder) {
  const fs::path path = folder.lexically_normal();
  return {path, lock_folder(path)};
}

RunFolder::RunFolder(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      trials_(std::move(other.trials_)),
      lock_(std::exchange(other.lock_, -1)) {}

const fs::path& RunFolder::root_of(const std::string& fit) const {
  return has_shared_trials() && internal::trial_in_path(fit) ? trials_ : path_;
}

RunFolder::~RunFolder() {
  if (lock_ >= 0)
    close(lock_);  // lets go of the lock; the file stays, empty and harmless
}

}  // namespace treadle
