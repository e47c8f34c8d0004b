#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

namespace treadle {

/// Numbers that are known before the training, as a step or a batch needs them: copied to a device
/// once, not every time. Copies share them. Any thread, and any stream: the first use on a device
/// waits for its copy.
class DeviceConstant {
 public:
  /// Undefined.
  DeviceConstant() = default;
  /// float64 on the CPU, which nobody changes any more.
  explicit DeviceConstant(at::Tensor numbers);
  ~DeviceConstant();

  bool is_defined() const { return numbers_.defined(); }
  /// float64 on the CPU; undefined where the constant is.
  const at::Tensor& numbers() const { return numbers_; }
  /// With the dtype and on the device of `options`; undefined where the constant is.
  at::Tensor with(const at::TensorOptions& options) const;

 private:
  struct Copies;
  at::Tensor numbers_;
  std::shared_ptr<Copies> copies_;
};

}  // namespace treadle
