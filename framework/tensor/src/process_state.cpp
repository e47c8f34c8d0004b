#include <treadle/tensor/process_state.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <locale>
#include <sstream>
#include <string_view>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

namespace treadle {
namespace {

/// What follows `start` on the first line that begins so; empty when there is none.
std::string line_of(const std::filesystem::path& file, std::string_view start) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start))
      return line.substr(std::min(line.find_first_not_of(" \t", start.size()), line.size()));
  }
  return "";
}

}  // namespace

ProcessState ProcessState::now() {
  ProcessState state;
  state.look_at_libtorch();
  state.look_at_this_thread();
  state.look_at_files_and_threads();
  state.look_at_environment();
  state.look_at_signals();
  return state;
}

std::vector<std::string> ProcessState::changes_until(const ProcessState& later) const {
  std::vector<std::string> changes;
  for (const auto& [what, value] : settings_) {
    const auto found = later.settings_.find(what);
    if (found == later.settings_.end()) {
      changes.push_back(what + " was " + value + " and is gone");
    } else if (found->second != value) {
      changes.push_back(what + " was " + value + " and is " + found->second);
    }
  }
  for (const auto& [what, value] : later.settings_) {
    if (settings_.count(what) == 0)
      changes.push_back(what + " was not there and is " + value);
  }
  for (const auto& [what, value] : later.holdings_) {
    if (holdings_.count(what) == 0)
      changes.push_back(what + " (" + value + ") was not there");
  }
  return changes;
}

void ProcessState::look_at_libtorch() {
  set("libtorch's default dtype",
      std::string(c10::toString(c10::typeMetaToScalarType(c10::get_default_dtype()))));
  set("libtorch's threads within an operator", at::get_num_threads());
  set("libtorch's threads between operators", static_cast<int>(at::get_num_interop_threads()));
  at::Context& context = at::globalContext();
  set("libtorch's use of deterministic algorithms", context.deterministicAlgorithms());
  set("libtorch's use of deterministic cuDNN", context.deterministicCuDNN());
  set("libtorch's benchmarking of cuDNN", context.benchmarkCuDNN());
  const at::Tensor state = context.defaultGenerator(at::kCPU).get_state();
  const std::string_view bytes(static_cast<const char*>(state.data_ptr()), state.nbytes());
  std::ostringstream digest;
  digest << std::hex << std::hash<std::string_view>()(bytes);
  set("the state of libtorch's global generator", digest.str());
}

void ProcessState::look_at_this_thread() {
  set("grad mode", c10::GradMode::is_enabled());
  set("inference mode", c10::InferenceMode::is_enabled());
  set("the rounding mode", std::fegetround());
  const volatile double smallest = std::numeric_limits<double>::min();
  set("arithmetic with denormal numbers", smallest / 2 != 0);
}

void ProcessState::look_at_files_and_threads() {
  namespace fs = std::filesystem;
  set("the working directory", fs::current_path().string());
  set("the umask", line_of("/proc/self/status", "Umask:"));
  std::error_code gone;  // both folders change while they are read
  for (const auto& task : fs::directory_iterator("/proc/self/task", gone)) {
    const std::string name = line_of(task.path() / "comm", "");
    if (!name.empty())
      holdings_["thread " + task.path().filename().string()] = name;
  }
  for (const auto& descriptor : fs::directory_iterator("/proc/self/fd", gone)) {
    const fs::path target = fs::read_symlink(descriptor.path(), gone);
    const std::string number = descriptor.path().filename().string();
    if (!gone && ::fcntl(std::stoi(number), F_GETFD) >= 0)
      holdings_["descriptor " + number] = target.string();
  }
}

void ProcessState::look_at_environment() {
  set("the C locale", std::string(std::setlocale(LC_ALL, nullptr)));
  set("the C++ locale", std::locale().name());
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    set("the environment variable " + std::string(text.substr(0, end)),
        end == text.npos ? "" : "\"" + std::string(text.substr(end + 1)) + "\"");
  }
}

void ProcessState::look_at_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0)
      continue;
    std::ostringstream text;
    text << reinterpret_cast<void*>(action.sa_handler);
    set("the handler of signal " + std::to_string(signal), text.str());
  }
}

void ProcessState::set(const std::string& what, std::string value) {
  settings_[what] = std::move(value);
}

void ProcessState::set(const std::string& what, bool value) {
  set(what, std::string(value ? "on" : "off"));
}

void ProcessState::set(const std::string& what, int value) {
  set(what, std::to_string(value));
}

}  // namespace treadle
