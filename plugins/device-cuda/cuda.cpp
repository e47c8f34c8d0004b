#include "cuda.h"

#include <string>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <treadle/base/error.h>

namespace treadle::device_cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// 12040 is 12.4.
std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string driver_text() {
  int runtime = 0;
  int driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  return "CUDA " + version_text(runtime) + ", driver for CUDA " + version_text(driver);
}

/// libtorch's allocator has statistics of a device once something was asked of it.
void expect_allocator(c10::Device device) {
  at::empty({0}, at::TensorOptions(device));
}

[[noreturn]] void fail(c10::Device device, cudaError_t error) {
  throw TrainingError("the device " + device.str() + " failed: " + cudaGetErrorString(error) +
                      "; work that was enqueued on it is lost. Look at it with nvidia-smi, then "
                      "resume the run");
}

}  // namespace

FoundDevices Cuda::do_find() const {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  FoundDevices found;
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();  // it would be reported for the next call
    found.why_none = (error == cudaSuccess ? std::string("the CUDA runtime counts no GPU")
                                           : std::string(cudaGetErrorString(error))) +
                     "; see nvidia-smi, and CUDA_VISIBLE_DEVICES";
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess)
      continue;
    found.devices.push_back({c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(i)),
                             properties.name, static_cast<std::int64_t>(properties.totalGlobalMem),
                             driver_text()});
  }
  if (found.devices.empty())
    found.why_none = "the GPUs do not answer; see nvidia-smi";
  return found;
}

at::Tensor Cuda::do_staged(const at::Tensor& host) const {
  return host.numel() == 0 || host.is_pinned() ? host : host.pin_memory();
}

DeviceMemory Cuda::do_memory(c10::Device device) const {
  expect_allocator(device);
  const auto stats = allocator::getDeviceStats(device.index());
  const c10::cuda::CUDAGuard guard(device);
  std::size_t free = 0;
  std::size_t total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess)
    fail(device, error);
  const auto& allocated = stats.allocated_bytes[0];  // [0]: of blocks of all sizes
  const std::int64_t reserved = stats.reserved_bytes[0].current;
  return {.in_use = allocated.current,
          .peak = allocated.peak,
          .reserved = reserved,
          .available = static_cast<std::int64_t>(free) + reserved - allocated.current};
}

void Cuda::do_reset_peak(c10::Device device) const {
  expect_allocator(device);
  allocator::resetPeakStats(device.index());
}

void Cuda::do_release_unused(c10::Device device) const {
  expect_allocator(device);
  allocator::emptyCache();
}

void Cuda::do_synchronize(c10::Device device) const {
  const c10::cuda::CUDAGuard guard(device);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess)
    fail(device, error);
}

}  // namespace treadle::device_cuda
