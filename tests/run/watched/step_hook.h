#pragma once

#include <functional>
#include <string_view>

/// What the schedule "watched" gives for this id: the test and the plugin, in one process, share
/// it.
struct StepHook {
  static constexpr std::string_view kInterface = "treadle.test.step-hook/1";

  /// Called before each step of every training, on the training's thread.
  std::function<void()> before_step;
};
