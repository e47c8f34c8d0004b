#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <utility>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/training/learning_rate_schedule.h>

#include "watched/step_hook.h"
#include "workspace.h"

/// Runs whose steps a test counts, and stops at one of them.
namespace treadle::testing {

/// Knows the schedule "watched".
inline Runtime watching_runtime() {
  RuntimeOptions options;
  options.plugin_dirs = {test_plugins()};
  return Runtime(options);
}

inline nlohmann::json watched_moons(int workers = 2) {
  nlohmann::json document = moons(workers);
  document["schedule"] = "watched";
  return document;
}

/// Has something done before each step of every training while it lives.
class StepWatch {
 public:
  StepWatch(const Runtime& runtime, std::function<void()> before_step)
      : schedule_(runtime.registry().make<LearningRateSchedule>("watched")),
        hook_(*schedule_->ask<StepHook>()) {
    hook_.before_step = std::move(before_step);
  }
  ~StepWatch() { hook_.before_step = nullptr; }
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

 private:
  std::unique_ptr<LearningRateSchedule> schedule_;
  StepHook& hook_;
};

/// Presses Ctrl-C within step number `steps` of the whole run, which is then its last.
class Impatient {
 public:
  Impatient(const Runtime& runtime, int steps)
      : watch_(runtime, [this, steps] {
          if (++seen_ == steps)
            stop_.request_stop();
        }) {}

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::atomic<int> seen_{0};
  StepWatch watch_;
};

/// The run of a document, stopped within step number `steps` of the whole run and resumed.
inline RunOutcome stopped_and_resumed(const Runtime& runtime, const Workspace& workspace,
                                      const nlohmann::json& document, int steps) {
  RunOptions options = workspace.options();
  {
    const Impatient impatient(runtime, steps);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  }
  const fs::path folder = fs::directory_iterator(options.output)->path();
  return resume_run(runtime, folder, workspace.options());
}

}  // namespace treadle::testing
