#include "search/settings/search_run.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "fit/fit_runner.h"

namespace treadle::internal {
namespace {

/// Calls Study::tick() on a thread of its own, and stops the fits that it returns.
class StudyClock {
 public:
  StudyClock(FitRunner& runner, Study& study)
      : runner_(runner),
        study_(study),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    const auto stopped = [&] { return stop.stop_requested(); };
    // The time that is left gets less when a trial ends that is better and took longer.
    while (!wake_.wait_for(lock, stop, kTick, stopped))
      tick();
  }

  void tick() {
    Study::Tick tick;
    runner_.with_planner([&] {
      tick = study_.tick();
      for (const std::string& fit : tick.stop)
        runner_.stop(fit);
    });
    if (tick.has_orders)
      runner_.wake();
  }

  static constexpr std::chrono::milliseconds kTick{100};

  FitRunner& runner_;
  Study& study_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

void run_search(RunParts& run, Study& study, FitPlanner& planner, FitLender* lender) {
  FitRunner runner(run, planner, study.memory_limit(), lender);
  std::optional<StudyClock> clock;
  if (study.has_clock())
    clock.emplace(runner, study);
  runner.run();
}

}  // namespace treadle::internal
