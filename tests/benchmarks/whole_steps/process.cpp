#include "process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace treadle::benchmarks {
namespace {

struct Closed {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// A file without a name: a program may print as much as it likes, and nobody has to read
/// meanwhile.
using Capture = std::unique_ptr<std::FILE, Closed>;

Capture make_capture() {
  Capture file(std::tmpfile());
  if (!file)
    throw std::runtime_error(std::string("no temporary file: ") + std::strerror(errno));
  // Only the copies that posix_spawn makes of it are for the program.
  fcntl(fileno(file.get()), F_SETFD, FD_CLOEXEC);
  return file;
}

std::string content_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;)
    text.append(buffer.data(), count);
  return text;
}

std::vector<std::string> merged(const Environment& environment) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string text = *line;
    if (environment.count(text.substr(0, text.find('='))) == 0)
      lines.push_back(text);
  }
  for (const auto& [name, value] : environment)
    lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Finished run_program(const std::vector<std::string>& words, const Environment& environment) {
  const Capture output = make_capture();
  const Capture errors = make_capture();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(output.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), STDERR_FILENO);
  std::vector<std::string> arguments = words;
  std::vector<std::string> lines = merged(environment);

  Finished finished;
  finished.started = std::chrono::steady_clock::now();
  pid_t pid = 0;
  const int failure = posix_spawnp(&pid, words.front().c_str(), &actions, nullptr,
                                   pointers_to(arguments).data(), pointers_to(lines).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0)
    throw CannotStart("cannot start " + words.front() + ": " + std::strerror(failure));
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - finished.started;
  finished.seconds = time.count();
  finished.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  finished.peak_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  finished.output = content_of(output.get());
  finished.errors = content_of(errors.get());
  return finished;
}

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace treadle::benchmarks
