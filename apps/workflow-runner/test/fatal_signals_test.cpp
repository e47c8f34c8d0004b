#include "terminal/fatal_signals.h"

#include <signal.h>

#include <gtest/gtest.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle::cli {
namespace {

/// Something whose author made a mistake.
class Crashing : public Provided {
 public:
  void crash(int number) {
    call_plugin(*this, "crash", [number] { raise(number); });
  }
};

/// Sanitizers report crashes themselves.
bool crashes_are_ours() {
  struct sigaction action {};
  sigaction(SIGSEGV, nullptr, &action);
  return action.sa_handler == SIG_DFL;
}

TEST(FatalSignalsDeathTest, NameThePluginThatRanAndWhatToDo) {
  if (!crashes_are_ours())
    GTEST_SKIP() << "a sanitizer reports crashes here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    EXPECT_EXIT(
        {
          report_fatal_signals();
          set_crash_remedy("resume it\n");
          Crashing crashing;
          crashing.set_origin("layer \"odd\" of plugin org.example.odd 1.0.0");
          crashing.crash(number);
        },
        testing::KilledBySignal(number),
        "crashed .SIG[A-Z]+. in layer \"odd\" of plugin org.example.odd 1.0.0, "
        "crash\\(\\).*\nresume "
        "it");
  }
}

TEST(FatalSignalsDeathTest, OutsideOfPluginsAskForAReport) {
  if (!crashes_are_ours())
    GTEST_SKIP() << "a sanitizer reports crashes here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        report_fatal_signals();
        raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "crashed .SIGSEGV.; please report it");
}

}  // namespace
}  // namespace treadle::cli
