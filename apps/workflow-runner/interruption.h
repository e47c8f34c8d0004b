#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace treadle::cli {

/// Turns Ctrl-C (and SIGTERM, SIGHUP) into a request to stop. The second one ends the process at
/// once, with exit code 130, whatever it is doing.
///
/// One object at a time; the signals do what they did before when it goes.
class Interruption {
 public:
  /// `on_request` is called once, on a thread of this object's, when the first signal came.
  explicit Interruption(std::function<void()> on_request);
  ~Interruption();

  std::stop_token token() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::cli
