#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

namespace treadle::far {

/// Calls of operators in the order in which they were made: the device's capture. A call is made
/// while it is recorded, because the shapes of what follows depend on it; at the end all memory
/// that was there before is as it was.
///
/// One at a time. Calls are recorded from any thread that is on its stream, or that works off a
/// backward pass begun there.
class Recording {
 public:
  /// Records from now on.
  explicit Recording(c10::StreamId stream);
  /// Ends, if end() was not called, and puts memory back.
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Puts memory back. The calls, which keep the memory they use.
  std::vector<std::function<void()>> end();

  /// The one that calls of this thread belong to; null: none.
  static Recording* of_this_thread(c10::StreamId stream);

  /// Where a thread comes to a stream: a backward pass that it begins there is recorded.
  static void note_stream(c10::StreamId stream);

  /// Before a call that may write to the tensor.
  void keep(const at::Tensor& tensor);
  /// For memory that was allocated now, which need not be kept.
  void note_made(const at::Tensor& tensor);
  void add(std::function<void()> call);

 private:
  struct Kept {
    c10::Storage storage;
    std::vector<char> bytes;
  };

  void put_back();

  const c10::StreamId stream_;
  const std::uint64_t number_;
  std::shared_ptr<void> mark_;  // of threads that it follows
  std::mutex mutex_;
  std::unordered_map<void*, Kept> kept_;
  std::unordered_set<void*> made_;
  std::vector<std::function<void()>> calls_;
};

/// Throws what a GPU's runtime throws for a call that cannot be recorded.
[[noreturn]] void refuse_recording(const char* what);

}  // namespace treadle::far
