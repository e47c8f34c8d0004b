// A supervisor of fake ranks in a process of its own, which tests can kill:
//
//   treadle-fake-launch [@HOSTS HOST ADDRESS] PROCESSES RESTARTS LEAST TIMEOUT_MS ACT… [-- ACT…]
//
// The acts behind "--" are those of a generation that resumes a run. With "!" behind the time-out,
// processes have a sixth of the usual time to end after a failure.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/host/launch/supervisor.h>

int main(int argc, char** argv) {
  using namespace treadle::launch;
  LaunchPlan plan;
  if (argv[1][0] == '@') {
    plan.hosts = atol(argv[1] + 1);
    plan.host = atol(argv[2]);
    plan.at = Endpoint::parse(argv[3], "@");
    argv += 3;
    argc -= 3;
  }
  plan.processes = atol(argv[1]);
  plan.restarts = atol(argv[2]);
  plan.least_processes = atol(argv[3]);
  plan.timeout = std::chrono::milliseconds(atol(argv[4]));
  if (std::string(argv[4]).ends_with("!")) {
    plan.settling /= 6;
    plan.grace /= 6;
  }
  plan.command = {TREADLE_FAKE_RANK};
  std::vector<std::string> resumed{TREADLE_FAKE_RANK};
  std::vector<std::string>* acts = &plan.command;
  for (int i = 5; i < argc; ++i) {
    if (argv[i] == std::string("--")) {
      acts = &resumed;
    } else {
      acts->push_back(argv[i]);
    }
  }
  plan.resuming = [&](const std::filesystem::path&) { return resumed; };
  try {
    return Supervisor(plan,
                      [](const std::string& text) {
                        fprintf(stderr, "launch: %s\n", text.c_str());
                        fflush(stderr);
                      })
        .run();
  } catch (const treadle::Error& error) {
    fprintf(stderr, "launch failed: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fprintf(stderr, "launch failed: %s\n", error.what());
    return 99;
  }
}
