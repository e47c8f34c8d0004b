#include "search/settings/search_run.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "fit/fit_runner.h"

namespace treadle::internal {
namespace {

/// What a study needs from time to time, on a thread of its own: it is ended when its time is up,
/// and learns what other processes have done.
class StudyClock {
 public:
  StudyClock(FitRunner& runner, Study& study)
      : runner_(runner),
        study_(study),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    const auto stopped = [&] { return stop.stop_requested(); };
    // The time that is left gets less when a trial ends that is better and took longer.
    while (!wake_.wait_for(lock, stop, kTick, stopped))
      tick();
  }

  void tick() {
    bool has_polled = false;
    runner_.with_planner([&] {
      try {
        if (const auto left = study_.seconds_left(); left && *left <= 0)
          stop_fits(study_.end_by_time());
        const auto interval = study_.poll_interval();
        if (!interval || Clock::now() < next_poll_)
          return;
        next_poll_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(*interval));
        stop_fits(study_.poll());
        has_polled = true;
      } catch (...) {
        study_.fail(std::current_exception());
        has_polled = true;
      }
    });
    if (has_polled)
      runner_.wake();
  }

  void stop_fits(const std::vector<std::string>& fits) {
    for (const std::string& fit : fits)
      runner_.stop(fit);
  }

  static constexpr std::chrono::milliseconds kTick{100};

  FitRunner& runner_;
  Study& study_;
  Clock::time_point next_poll_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

void run_search(RunParts& run, Study& study, FitPlanner& planner) {
  FitRunner runner(run, planner, study.memory_limit());
  std::optional<StudyClock> clock;
  if (study.seconds_left() || study.poll_interval())
    clock.emplace(runner, study);
  runner.run();
}

}  // namespace treadle::internal
