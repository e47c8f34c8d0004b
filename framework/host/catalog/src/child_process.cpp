#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxLine = 64 * 1024;
constexpr std::size_t kMaxOutput = 4 * 1024;
/// A child of the helper may keep the descriptors open: their end says nothing, so the process is
/// looked at this often.
constexpr milliseconds kLook{20};

struct Pipe {
  int ours = -1;
  int theirs = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw PluginError("no pipe to a helper process can be made: " +
                        std::generic_category().message(errno));
    ours = ends[0];
    theirs = ends[1];
    ::fcntl(ours, F_SETFL, O_NONBLOCK);
  }
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write
  result.push_back(nullptr);
  return result;
}

/// Reads what is there. False when nothing more will come.
bool read_available(int descriptor, std::string& into) {
  std::array<char, 16 * 1024> buffer{};
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) {
      into.append(buffer.data(), static_cast<std::size_t>(count));
      if (into.size() > kMaxLine * 2)
        return true;
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

void close_once(int& descriptor) {
  if (descriptor >= 0)
    ::close(descriptor);
  descriptor = -1;
}

}  // namespace

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment, int channel) {
  Pipe answers;
  Pipe printed;
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, printed.theirs, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, printed.theirs, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answers.theirs, channel);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int failed = ::posix_spawn(&process_, program.c_str(), &actions, &attributes,
                                   pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(answers.theirs);
  ::close(printed.theirs);
  channel_ = answers.ours;
  printed_ = printed.ours;
  if (failed != 0) {
    process_ = -1;
    close_once(channel_);
    close_once(printed_);
    throw PluginError(program.string() +
                      " cannot be started: " + std::generic_category().message(failed));
  }
}

ChildProcess::~ChildProcess() {
  kill();
  close_once(channel_);
  close_once(printed_);
}

bool ChildProcess::has_exited() {
  if (status_)
    return true;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) != process_)
    return false;
  status_ = status;
  return true;
}

void ChildProcess::kill() {
  if (process_ < 0)
    return;
  // What the helper started belongs to its group, also when the helper itself is gone.
  ::kill(-process_, SIGKILL);
  if (!status_) {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = status;
  }
}

void ChildProcess::wait_for_input(milliseconds limit) {
  // A negative descriptor is left out by poll().
  std::array<pollfd, 2> ends{{{channel_, POLLIN, 0}, {printed_, POLLIN, 0}}};
  const milliseconds wait = std::clamp(limit, milliseconds(0), kLook);
  ::poll(ends.data(), ends.size(), static_cast<int>(wait.count()));
  read_output();
  read_channel();
}

void ChildProcess::read_output() {
  if (printed_ >= 0 && !read_available(printed_, output_))
    close_once(printed_);
  if (output_.size() > kMaxOutput)
    output_.erase(0, output_.size() - kMaxOutput);
}

void ChildProcess::read_channel() {
  if (channel_ >= 0 && received_.size() <= kMaxLine && !read_available(channel_, received_))
    close_once(channel_);
}

bool ChildProcess::take_line(std::string& line) {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos && received_.size() <= kMaxLine)
    return false;
  line = received_.substr(0, std::min(end, kMaxLine));
  received_.erase(0, end == std::string::npos ? received_.size() : end + 1);
  return true;
}

ChildProcess::Event ChildProcess::next_line(std::string& line, Clock::time_point deadline) {
  while (true) {
    const bool exited = has_exited();
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    wait_for_input(exited ? milliseconds(0) : left);
    if (take_line(line))
      return Event::kLine;
    if (exited)
      return Event::kEnded;
    if (left <= milliseconds(0))
      return Event::kTimeout;
  }
}

bool ChildProcess::ended_by_signal() const {
  return status_ && WIFSIGNALED(*status_);
}

std::string ChildProcess::ending() const {
  TREADLE_EXPECTS(status_.has_value(), "the process has not ended");
  if (!WIFSIGNALED(*status_))
    return "exit code " + std::to_string(WEXITSTATUS(*status_));
  const char* name = ::sigabbrev_np(WTERMSIG(*status_));
  return name != nullptr ? std::string("SIG") + name
                         : "signal " + std::to_string(WTERMSIG(*status_));
}

}  // namespace treadle::internal
