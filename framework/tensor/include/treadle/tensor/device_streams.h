#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

namespace torch::nn {
class Module;
}

/// Streams and events of a device, through the guard that libtorch has for it: the same code for
/// every device. On a CPU, where operators are done when they return, all of it does nothing.
namespace treadle {

/// Where a model computes: the device of its parameters; the CPU for one without parameters.
c10::Device device_of(const torch::nn::Module& module);

/// The stream on which this thread enqueues work for `device`.
c10::Stream current_stream(c10::Device device);
/// Another one, for work beside it. Taken from a pool: many of them share streams.
c10::Stream another_stream(c10::Device device);

/// While it lives, this thread enqueues work on a stream. Tasks on other threads need one each: the
/// stream of a thread does not follow them.
class StreamScope {
 public:
  explicit StreamScope(const c10::Stream& stream);

 private:
  std::optional<c10::StreamGuard> guard_;
};

/// A place in the work of a stream.
class StreamEvent {
 public:
  /// Behind all that has been enqueued on the stream so far.
  void record(const c10::Stream& stream);
  /// Lets work that is enqueued on `stream` from now on wait for the place. The host does not wait.
  void hold_back(const c10::Stream& stream);
  /// Whether the device has come past it; true where nothing was recorded.
  bool has_passed() const;

 private:
  std::optional<c10::Event> event_;
};

/// Keeps the memory of a tensor, once nothing refers to it, until what is enqueued on `stream` by
/// then has been done. Needed where a tensor was made on another stream.
void use_on(const c10::Stream& stream, const at::Tensor& tensor);

}  // namespace treadle
