#include "search/search_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "session/fit_runner.h"

namespace treadle::internal {
namespace {

/// Ends a study when its time is up, on a thread of its own.
class StudyClock {
 public:
  StudyClock(FitRunner& runner, Study& study)
      : thread_(
            [this, &runner, &study](const std::stop_token& stop) { run(runner, study, stop); }) {}

 private:
  void run(FitRunner& runner, Study& study, const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    for (;;) {
      std::optional<double> left;
      runner.with_planner([&] {
        left = study.seconds_left();
        if (!left || *left > 0)
          return;
        for (const std::string& fit : study.end_by_time())
          runner.stop(fit);
      });
      if (left && *left <= 0)
        return;
      // The time that is left gets less when a trial ends that is better and took longer.
      const std::chrono::duration<double> next(std::clamp(left.value_or(kLongest), 0.0, kLongest));
      if (wake_.wait_for(lock, stop, next, [&] { return stop.stop_requested(); }))
        return;
    }
  }

  static constexpr double kLongest = 0.1;  // seconds

  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

void run_search(RunParts& run, Study& study) {
  FitRunner runner(run, study, study.memory_limit());
  std::optional<StudyClock> clock;
  if (study.seconds_left())
    clock.emplace(runner, study);
  runner.run();
}

}  // namespace treadle::internal
