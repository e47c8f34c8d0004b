#include "command_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto kPatience = std::chrono::seconds(60);

std::string required(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr)
    throw std::runtime_error(std::string(variable) + " is not set: start the tests with ctest");
  return value;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words)
    result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Channel {
  int ours = -1;
  int theirs = -1;
};

Channel make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  return {ends[0], ends[1]};
}

Channel make_terminal() {
  Channel channel;
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 30;
  if (openpty(&channel.ours, &channel.theirs, nullptr, nullptr, &size) != 0)
    throw std::runtime_error("no terminal");
  fcntl(channel.ours, F_SETFD, FD_CLOEXEC);
  fcntl(channel.theirs, F_SETFD, FD_CLOEXEC);
  return channel;
}

/// Appends what is there; false at the end. A terminal whose other side has gone gives an error.
bool drain(int& descriptor, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
    return true;
  }
  close(descriptor);
  descriptor = -1;
  return false;
}

}  // namespace

Running::Running(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                 const fs::path& folder, bool on_terminal) {
  const Channel out = on_terminal ? make_terminal() : make_pipe();
  const Channel err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.theirs, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.theirs, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const int failed = posix_spawnp(&process_, words.front().c_str(), &actions, nullptr,
                                  pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out.theirs);
  close(err.theirs);
  out_ = out.ours;
  err_ = err.ours;
  if (failed != 0)
    throw std::runtime_error(words.front() + " cannot be started");
}

Running::~Running() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  for (int descriptor : {out_, err_}) {
    if (descriptor >= 0)
      close(descriptor);
  }
}

bool Running::read_some(int timeout_ms) {
  std::array<pollfd, 2> ends{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0)
    return false;
  poll(ends.data(), ends.size(), timeout_ms);
  if (ends[0].revents != 0)
    drain(out_, finished_.out);
  if (ends[1].revents != 0)
    drain(err_, finished_.err);
  return true;
}

bool Running::has_printed(std::string_view text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (finished_.out.find(text) == std::string::npos) {
    if (!read_some(100) || std::chrono::steady_clock::now() > deadline)
      return false;
  }
  return true;
}

void Running::send(int signal) const {
  kill(process_, signal);
}

Finished Running::wait() {
  while (read_some(1000)) {
  }
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  finished_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished_;
}

CommandFixture::CommandFixture() {
  std::string path = (fs::temp_directory_path() / "treadle-cli-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw std::runtime_error("no folder for the test");
  folder_ = path;
  for (const char* variable : {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                               "LSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(variable))
      set(variable, value);
  }
  set("HOME", folder_.string());
  set("XDG_CACHE_HOME", (folder_ / "cache").string());
  set("XDG_DATA_HOME", (folder_ / "data").string());
  // Trying the plugins out takes half a second: once for all tests.
  set("TREADLE_PLUGIN_CACHE", required("TREADLE_BUILD") + "/tests/plugins.json");
  set("TERM", "xterm-256color");
}

CommandFixture::~CommandFixture() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Finished CommandFixture::run(const std::vector<std::string>& words) {
  return start(words).wait();
}

bool CommandFixture::terminals_exist() {
  int ours = -1;
  int theirs = -1;
  if (openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0)
    return false;
  close(ours);
  close(theirs);
  return true;
}

Finished CommandFixture::run_on_terminal(const std::vector<std::string>& words) {
  return start(words, true).wait();
}

Running CommandFixture::start(const std::vector<std::string>& words, bool on_terminal) {
  std::vector<std::string> all{runner()};
  all.insert(all.end(), words.begin(), words.end());
  return Running(all, environment_, folder_, on_terminal);
}

Running CommandFixture::start_program(const std::vector<std::string>& words) {
  return Running(words, environment_, folder_, false);
}

Finished CommandFixture::run_program(const std::vector<std::string>& words) {
  return start_program(words).wait();
}

void CommandFixture::skip_without(const std::string& interface_word, const std::string& name) {
  if (run({"plugins", "list", interface_word}).out.find("  " + name + " ") == std::string::npos)
    GTEST_SKIP() << "the " << interface_word << " " << name << " was not built";
}

std::string CommandFixture::runner() {
  return required("TREADLE_RUNNER");
}

void CommandFixture::set(const std::string& variable, const std::string& value) {
  std::erase_if(environment_,
                [&](const std::string& entry) { return entry.starts_with(variable + "="); });
  environment_.push_back(variable + "=" + value);
}

fs::path CommandFixture::write(const std::string& name, std::string_view text) {
  const fs::path path = folder_ / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string CommandFixture::read(const fs::path& path) const {
  std::ostringstream text;
  text << std::ifstream(folder_ / path, std::ios::binary).rdbuf();
  return text.str();
}

void CommandFixture::given_points() {
  std::string text = "x,y,class\n";
  for (int i = 0; i < 60; ++i) {
    const bool red = i % 2 == 1;
    const int scatter = i * 7 % 11;
    text += std::to_string((red ? 20 : -20) + scatter) + "," + std::to_string(i * 5 % 13) + "," +
            (red ? "red" : "blue") + "\n";
  }
  write("points.csv", text);
}

void CommandFixture::given_document(int epochs, const json& more) {
  json document{{"treadle", 1},
                {"name", "points"},
                {"seed", 7},
                {"data", {{"use", "csv"}, {"path", "points.csv"}, {"target", "class"}}},
                {"transforms", {{{"use", "standardize"}}}},
                {"model", {{"use", "mlp"}, {"hidden", {8}}}},
                {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.01}}},
                {"training", {{"use", "standard"}, {"epochs", epochs}, {"batch_size", 4}}}};
  document.update(more);
  write("points.json", document.dump(2));
}

fs::path CommandFixture::only_run() const {
  fs::path only;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "runs")) {
    if (!only.empty())
      throw std::runtime_error("there are several runs");
    only = entry.path();
  }
  return only;
}

}  // namespace treadle
