#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <treadle/base/system/processors.h>

namespace treadle::images {

/// Calls `work(row)` for the rows 0, …, count - 1 on all cores; `make_work()` makes one `work` for
/// each thread. The order is not defined. The first exception ends it and is thrown again.
template <typename MakeWork>
void for_rows_in_parallel(std::size_t count, MakeWork&& make_work) {
  constexpr std::size_t kRowsPerThread = 16;  // a thread is worth that many images
  const std::size_t threads = std::clamp<std::size_t>(count / kRowsPerThread, 1,
                                                      static_cast<std::size_t>(available_cores()));
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      auto work = make_work();
      for (std::size_t row = next++; row < count; row = next++)
        work(row);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure)
        failure = std::current_exception();
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i)
    others.emplace_back(run);
  run();
  others.clear();
  if (failure)
    std::rethrow_exception(failure);
}

}  // namespace treadle::images
