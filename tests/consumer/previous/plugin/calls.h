#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

/// Which virtual functions have crossed between this plugin and its host. What each component's
/// do_ask() gives for this id; the test has a class of the same name and layout of its own.
struct Calls {
  static constexpr std::string_view kInterface = "treadle.test.calls/1";

  void add(const char* name) {
    const std::lock_guard lock(mutex);
    names.insert(name);
  }

  std::mutex mutex;
  std::set<std::string> names;  ///< "Optimizer::do_update"
  /// Called after each step of a training, on its thread.
  std::function<void()> after_step;
};
