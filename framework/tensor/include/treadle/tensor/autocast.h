#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace treadle {

/// The autocast of a thread on each kind of device: the operators that libtorch lists (matrix
/// products, convolutions) then compute in that dtype, whatever their operands are. Nothing: no
/// autocast.
///
/// A thread that works for another one takes this over: at::ThreadLocalState does not have all of
/// it.
struct Autocast {
  static constexpr std::array kDevices{c10::DeviceType::CPU, c10::DeviceType::CUDA};
  std::array<std::optional<c10::ScalarType>, kDevices.size()> dtypes = {};

  /// `dtype` on one kind of device. Expects libtorch to have autocast there.
  static Autocast on(c10::DeviceType device, c10::ScalarType dtype);
  static Autocast of_this_thread();
  /// Whether libtorch has autocast for such a device.
  static bool exists_on(c10::DeviceType device);

  bool is_on() const;
  bool operator==(const Autocast&) const = default;
};

/// This thread autocasts so while one lives.
///
/// Casts of parameters are not kept from one operator to the next. Kept ones are shared by all
/// threads of a process, a cast made where no gradients are recorded would be used where they are,
/// and the gradients of a layer that is called a hundred times would be added in 16 bits.
class AutocastScope {
 public:
  explicit AutocastScope(const Autocast& autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const Autocast before_;
  const bool kept_casts_;
};

}  // namespace treadle
