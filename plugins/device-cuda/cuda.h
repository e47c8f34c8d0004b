#pragma once

#include <treadle/base/config.h>
#include <treadle/core/device_backend.h>

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
  void do_release_unused(c10::Device device) const override;
  void do_synchronize(c10::Device device) const override;
};

}  // namespace treadle::device_cuda
