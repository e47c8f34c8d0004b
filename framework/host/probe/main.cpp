// treadle-probe: tries plugins out in a process of its own. Started by the catalog, with the files
// as arguments, with --inspect and one file, or with --host.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <treadle/host/catalog/plugin_probe.h>
#include <treadle/host/run/probe_helper.h>

int main(int argc, char** argv) {
  // Nobody reads the answers of an orphan, and a core file would be a surprise.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // What a plugin prints is part of its story, also when it ends the process.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  // Nothing is caught: some C libraries let an exception out of dlopen(), which then is in no state
  // to go on. As it is, what a plugin's static constructor throws ends the process everywhere, and
  // the missing answer tells.
  const std::vector<std::filesystem::path> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == treadle::kProbeHost) {
    treadle::answer_about_host();
  } else if (words.size() == 2 && words[0] == treadle::kProbeInspect) {
    treadle::answer_inspection(words[1]);
  } else {
    treadle::answer_probe(words);
  }
  // Without running what the plugins have registered for the end of the process.
  _exit(EXIT_SUCCESS);
}
