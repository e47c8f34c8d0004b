#include "launched.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace treadle::launch {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string text_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Neither gone nor a zombie that its parent has not waited for yet.
bool is_alive(pid_t id) {
  const std::string about = text_in("/proc/" + std::to_string(id) + "/stat");
  const std::size_t end = about.rfind(") ");
  return end != std::string::npos && about[end + 2] != 'Z' && about[end + 2] != 'X';
}

}  // namespace

Launched::Launched(const fs::path& folder, const std::vector<std::string>& words,
                   const std::string& name)
    : folder_(folder), name_(name), begin_(Clock::now()) {
  std::vector<std::string> all{TREADLE_FAKE_LAUNCH};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder / ("out" + name)).c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder / ("err" + name)).c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const int failed =
      posix_spawn(&id_, TREADLE_FAKE_LAUNCH, &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw std::runtime_error("the fake launch cannot be started");
}

Launched::~Launched() {
  if (id_ > 0) {
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
}

void Launched::send(int signal) const {
  kill(id_, signal);
}

std::string Launched::text(const char* stream) const {
  return text_in(folder_ / (stream + name_));
}

bool Launched::has_announced(const std::string& announced) const {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (text("err").find(announced) == std::string::npos) {
    if (Clock::now() > deadline)
      return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

Ended Launched::wait() {
  int status = 0;
  while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  Ended ended;
  ended.time = std::chrono::duration_cast<milliseconds>(Clock::now() - begin_);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.out = text("out");
  ended.err = text("err");
  return ended;
}

Launches::Launches() {
  std::string pattern = (fs::temp_directory_path() / "treadle-launches-XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
}

Launches::~Launches() {
  fs::remove_all(folder_);
}

std::vector<pid_t> Launches::pids() const {
  std::ifstream file(folder_ / "pids");
  return {std::istream_iterator<pid_t>(file), {}};
}

void Launches::await_pids(std::size_t count) const {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (pids().size() < count && Clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(5));
  ASSERT_GE(pids().size(), count);
}

std::vector<pid_t> Launches::living() const {
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  std::vector<pid_t> alive;
  do {
    alive = pids();
    std::erase_if(alive, [](pid_t id) { return !is_alive(id); });
  } while (!alive.empty() && Clock::now() < deadline);
  return alive;
}

std::vector<std::string> Launches::group_folders() const {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with("treadle-launch-"))
      found.push_back(entry.path().filename());
  }
  return found;
}

}  // namespace treadle::launch
