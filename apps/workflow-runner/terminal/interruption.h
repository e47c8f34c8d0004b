#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace treadle::cli {

/// Turns Ctrl-C (and SIGTERM, SIGHUP) into a request to stop. The second one ends the process at
/// once, with exit code 130, whatever it is doing. So does the first where nothing can be lost yet:
/// a program that waits for its data may never hear of a request.
///
/// One object at a time; the signals do what they did before when it goes.
class Interruption {
 public:
  /// `on_request` is called once, on a thread of this object's, when the first signal came; it is
  /// told whether saving is expected.
  /// `on_giving_up` is called on the same thread, just before it ends the process because the
  /// request was not heard in time.
  Interruption(std::function<void(bool)> on_request, std::function<void()> on_giving_up);
  ~Interruption();

  /// From now on a request is waited for, however long saving takes. From any thread.
  void expect_saving() noexcept;

  std::stop_token token() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::cli
