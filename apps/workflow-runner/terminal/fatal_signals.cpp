#include "terminal/fatal_signals.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include <treadle/core/components/plugin_call.h>

namespace treadle::cli {
namespace {

struct FatalSignal {
  int number;
  std::string_view name;
};
constexpr std::array kFatalSignals{FatalSignal{SIGSEGV, "SIGSEGV"}, FatalSignal{SIGBUS, "SIGBUS"},
                                   FatalSignal{SIGILL, "SIGILL"}, FatalSignal{SIGFPE, "SIGFPE"},
                                   FatalSignal{SIGABRT, "SIGABRT"}};

// A signal handler reaches nothing but these.
std::array<char, 4096> remedy;
std::atomic<std::size_t> remedy_size{0};

void put(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void treadle_report_crash(int number) {
  const auto known =
      std::find_if(kFatalSignals.begin(), kFatalSignals.end(),
                   [number](const FatalSignal& fatal) { return fatal.number == number; });
  const PluginCall call = running_plugin_call();
  put("\nworkflow-runner: crashed (");
  put(known == kFatalSignals.end() ? std::string_view("signal") : known->name);
  put(call.origin.empty() ? std::string_view(")") : std::string_view(") in "));
  put(call.origin);
  if (!call.origin.empty() && !call.method.empty()) {
    put(", ");
    put(call.method);
    put("()");
  }
  put(call.origin.empty()
          ? std::string_view("; please report it with the command\n")
          : std::string_view("; install that plugin again, or report it to its author\n"));
  put({remedy.data(), remedy_size.load()});
  // SA_RESETHAND has put the default back: now it ends the process.
  raise(number);
}

}  // namespace

void report_fatal_signals() {
  for (const FatalSignal& fatal : kFatalSignals) {
    struct sigaction before {};
    sigaction(fatal.number, nullptr, &before);
    if (before.sa_handler != SIG_DFL)
      continue;
    struct sigaction action {};
    action.sa_handler = treadle_report_crash;
    action.sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(fatal.number, &action, nullptr);
  }
}

void set_crash_remedy(std::string_view text) {
  remedy_size = 0;
  const std::size_t size = std::min(text.size(), remedy.size());
  std::copy_n(text.data(), size, remedy.data());
  remedy_size = size;
}

}  // namespace treadle::cli
