#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/devices/device_backend.h>

namespace treadle::device_cuda {

/// `cuda`: the GPUs that the CUDA runtime counts, with libtorch's caching allocators for memory of
/// devices and for page-locked memory.
class Cuda final : public DeviceBackend {
 public:
  explicit Cuda(const Config&) {}

 private:
  FoundDevices do_find() const override;
  at::Tensor do_staged(const at::Tensor& host) const override;
  DeviceMemory do_memory(c10::Device device) const override;
  void do_reset_peak(c10::Device device) const override;
  void do_synchronize(c10::Device device) const override;
  bool do_can_capture() const override;
  std::unique_ptr<CapturedWork> do_capture(c10::Device device,
                                           std::span<const at::Generator> generators,
                                           const std::function<void()>& work) const override;
  std::unique_ptr<DeviceMark> do_mark(c10::Device device) const override;
};

}  // namespace treadle::device_cuda
