#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace treadle::gloo_group {

/// How long a call may wait.
struct Waiting {
  std::chrono::steady_clock::time_point end;
  std::function<bool()> is_given_up = [] { return false; };

  static Waiting of(std::chrono::milliseconds time) {
    return {.end = std::chrono::steady_clock::now() + time};
  }
  bool is_over() const { return is_given_up() || std::chrono::steady_clock::now() >= end; }
};

/// Runs `work()` in a thread of its own, and returns its result. Nothing where that takes too long:
/// the thread is left behind, since libtorch's stores keep no time limit and cannot be woken.
template <typename Work, typename Result = std::invoke_result_t<Work>>
std::optional<Result> guarded(const Waiting& waiting, Work work) {
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result> result;
    std::exception_ptr error;
  };
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, work = std::move(work)]() mutable {
    std::optional<Result> result;
    std::exception_ptr error;
    try {
      result.emplace(work());
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(outcome->mutex);
    outcome->result = std::move(result);
    outcome->error = error;
    outcome->changed.notify_all();
  }).detach();

  std::unique_lock lock(outcome->mutex);
  while (!outcome->result && !outcome->error && !waiting.is_over())
    outcome->changed.wait_for(lock, std::chrono::milliseconds(5));
  if (outcome->error)
    std::rethrow_exception(std::exchange(outcome->error, nullptr));
  return std::exchange(outcome->result, std::nullopt);
}

}  // namespace treadle::gloo_group
