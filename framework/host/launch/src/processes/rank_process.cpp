#include "processes/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/host/launch/group_variables.h>

namespace treadle::launch {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));  // execvpe() does not write
  result.push_back(nullptr);
  return result;
}

/// -1: the output of this process.
int open_output(const std::filesystem::path& path) {
  if (path.empty())
    return -1;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    throw StorageError(path.string() +
                       ": cannot be written: " + std::generic_category().message(errno));
  }
  return file;
}

/// A document may come through the standard input, which each process opens anew; of a pipe or a
/// terminal the processes would take each other's bytes.
void keep_files_alone_as_input() {
  struct stat about {};
  if (::fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode))
    return;
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
  }
}

}  // namespace

RankProcess::RankProcess(std::int64_t rank, const Start& start) : rank_(rank) {
  std::vector<std::string> environment = start.environment;
  environment.push_back(variable::kHeartbeat + ("=" + std::to_string(heartbeat_.rank_end())));
  const std::vector<char*> words = pointers(start.command);
  const std::vector<char*> variables = pointers(environment);
  const int output = open_output(start.output);
  const pid_t supervisor = ::getpid();
  std::array<int, 2> report{-1, -1};
  const bool has_pipe = ::pipe2(report.data(), O_CLOEXEC) == 0;
  if (has_pipe)
    id_ = ::fork();
  const int reason = errno;
  if (id_ == 0)
    become(words.data(), variables.data(), output, {supervisor, report[1]});
  if (output >= 0)
    ::close(output);
  heartbeat_.close_rank_end();
  if (has_pipe)
    ::close(report[1]);
  if (id_ < 0) {
    if (has_pipe)
      ::close(report[0]);
    throw std::system_error(reason, std::generic_category(), "no process can be started");
  }
  ::setpgid(id_, id_);  // both sides do: each may be the first
  int failed = 0;
  while (::read(report[0], &failed, sizeof failed) < 0 && errno == EINTR) {
  }
  ::close(report[0]);
  if (failed != 0) {
    kill();
    throw StorageError(start.command.front() +
                       ": cannot be started: " + std::generic_category().message(failed));
  }
}

void RankProcess::become(char* const* command, char* const* environment, int output,
                         const Parent& parent) const {
  // No memory may be allocated between fork() and exec().
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent.id)
    ::_exit(1);  // it died before the line above
  keep_files_alone_as_input();
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  ::fcntl(heartbeat_.rank_end(), F_SETFD, 0);
  ::signal(SIGPIPE, SIG_DFL);  // which the supervisor may ignore
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(command[0], command, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(parent.report, &reason, sizeof reason);
  ::_exit(127);
}

RankProcess::~RankProcess() {
  kill();
}

bool RankProcess::has_ended() {
  if (status_)
    return true;
  siginfo_t about{};
  if (::waitid(P_PID, static_cast<id_t>(id_), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      about.si_pid != id_)
    return false;
  // Helpers that it has started belong to its group; until it is waited for, no other group has
  // that number.
  ::kill(-id_, SIGKILL);
  await();
  return true;
}

bool RankProcess::is_frozen() const {
  siginfo_t about{};
  return !status_ &&
         ::waitid(P_PID, static_cast<id_t>(id_), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == id_;
}

void RankProcess::send(int signal) const {
  if (!status_)
    ::kill(id_, signal);
}

void RankProcess::kill() {
  if (id_ < 0 || status_)
    return;
  ::kill(-id_, SIGKILL);
  ::kill(id_, SIGKILL);  // it may not have its group yet
  await();
}

void RankProcess::await() {
  // One that waits for a disk or a network file system may live on after SIGKILL: let it.
  constexpr int kMostMs = 10'000;
  int status = SIGKILL;
  for (int ms = 0; ms < kMostMs && ::waitpid(id_, &status, WNOHANG) == 0; ++ms)
    ::usleep(1000);
  status_ = status;
}

}  // namespace treadle::launch
