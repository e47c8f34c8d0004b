#include "verify/training_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

#include <treadle/base/error.h>

namespace treadle::cli {

TrainingProcess::TrainingProcess(const std::vector<std::string>& arguments,
                                 const std::filesystem::path& input) {
  std::vector<std::string> words{"workflow-runner"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const int failed =
      ::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    throw StorageError("a process to train in cannot be started: " +
                       std::generic_category().message(failed));
}

TrainingProcess::~TrainingProcess() {
  kill();
}

bool TrainingProcess::ends_within(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLook{5};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!status_) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      status_ = status;
    } else if (std::chrono::steady_clock::now() >= end) {
      return false;
    } else {
      std::this_thread::sleep_for(std::min(kLook, limit));
    }
  }
  return true;
}

void TrainingProcess::kill() {
  if (status_ || process_ < 0)
    return;
  ::kill(process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
}

int TrainingProcess::exit_code() const {
  TREADLE_EXPECTS(status_.has_value(), "the process has not ended");
  constexpr int kBySignal = 128;
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : kBySignal + WTERMSIG(*status_);
}

}  // namespace treadle::cli
