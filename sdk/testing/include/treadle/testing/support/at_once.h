#pragma once

#include <cstddef>
#include <exception>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace treadle::testing {

/// Runs `work(0)`, `work(1)` … on as many threads, which begin together. What the failed ones
/// threw, in words:
///
///     EXPECT_EQ(at_once(4, [&](std::size_t thread) { … }), kNoErrors);
template <typename Work>
std::vector<std::string> at_once(std::size_t threads, Work&& work) {
  std::latch start(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::string> errors(threads);
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        work(i);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      } catch (...) {
        errors[i] = "something that is not derived from std::exception";
      }
    });
  }
  for (std::thread& thread : running)
    thread.join();
  std::erase(errors, "");
  return errors;
}

inline const std::vector<std::string> kNoErrors;

}  // namespace treadle::testing
