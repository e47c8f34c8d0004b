#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include <treadle/core/devices/device_backend.h>

namespace treadle::far {

/// What crossed between the host and the device since the process began, as counted by the
/// operators. Whatever the device computes on the host's behalf does not count.
struct Traffic {
  std::atomic<std::int64_t> to_host{0};    ///< copies that the host waited for
  std::atomic<std::int64_t> to_device{0};  ///< copies
  std::atomic<std::int64_t> waits{0};      ///< numbers read by the host: item(), bool(tensor)
};
Traffic& traffic();

/// The optional interface by which a test reaches the counters within the device's plugin.
class CountsTraffic {
 public:
  static constexpr std::string_view kInterface = "treadle.test.far-traffic/0";

  virtual ~CountsTraffic() = default;
  virtual const Traffic& traffic() const = 0;
};

/// Does every copy that is still enqueued on a stream; a wait.
void synchronize();

/// Records what `work` does on this thread's stream; see DeviceBackend::capture().
std::unique_ptr<CapturedWork> capture(const std::function<void()>& work);

/// Makes libtorch know the device: its kernels and its guard. Once in a process, before the first
/// backward pass: the autograd engine counts devices then.
void install();

}  // namespace treadle::far
