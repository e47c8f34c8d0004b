#pragma once

#include <functional>
#include <string_view>

/// What the schedule "faulty_schedule" gives for this id: the test and the plugin, in one process,
/// share it.
struct FaultHook {
  static constexpr std::string_view kInterface = "treadle.test.fault-hook/1";

  /// Called where something may go wrong, with a name for the place ("transform.apply"), on
  /// whatever thread is there. What it throws is thrown by the plugin. Set while nothing runs.
  std::function<void(std::string_view place)> at;
};
