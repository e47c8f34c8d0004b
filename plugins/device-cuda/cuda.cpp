#include "cuda.h"

#include <memory>
#include <string>

#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
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

/// An event of the CUDA runtime with its time.
class EventMark final : public DeviceMark {
 public:
  explicit EventMark(c10::Device device) : device_(device) {
    const c10::cuda::CUDAGuard guard(device_);
    expect_success(cudaEventCreateWithFlags(&event_, cudaEventDefault));
  }
  ~EventMark() override {
    const c10::cuda::CUDAGuard guard(device_);
    cudaEventDestroy(event_);
  }

  void record() override {
    const c10::cuda::CUDAGuard guard(device_);
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(device_.index());
    expect_success(cudaEventRecord(event_, stream.stream()));
    is_recorded_ = true;
  }
  bool has_passed() const override {
    if (!is_recorded_)
      return false;
    const c10::cuda::CUDAGuard guard(device_);
    const cudaError_t status = cudaEventQuery(event_);
    if (status != cudaErrorNotReady)
      expect_success(status);
    else
      cudaGetLastError();  // it would be reported for the next call
    return status == cudaSuccess;
  }
  double seconds_since(const DeviceMark& earlier) const override {
    const c10::cuda::CUDAGuard guard(device_);
    float milliseconds = 0;
    expect_success(
        cudaEventElapsedTime(&milliseconds, static_cast<const EventMark&>(earlier).event_, event_));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  void expect_success(cudaError_t error) const {
    if (error != cudaSuccess)
      fail(device_, error);
  }

  const c10::Device device_;
  cudaEvent_t event_ = nullptr;
  bool is_recorded_ = false;
};

class CapturedGraph final : public CapturedWork {
 public:
  at::cuda::CUDAGraph& graph() { return graph_; }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

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

bool Cuda::do_can_capture() const {
  return true;
}

std::unique_ptr<CapturedWork> Cuda::do_capture(c10::Device device,
                                               std::span<const at::Generator> generators,
                                               const std::function<void()>& work) const {
  const c10::cuda::CUDAGuard guard(device);
  auto captured = std::make_unique<CapturedGraph>();
  at::cuda::CUDAGraph& graph = captured->graph();
  for (const at::Generator& generator : generators)
    graph.register_generator_state(generator);
  // The threads of the batch pipeline go on: what they allocate and enqueue is not refused.
  graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // what the work threw says more
      cudaGetLastError();
    }
    throw;
  }
  graph.capture_end();
  return captured;
}

void Cuda::do_synchronize(c10::Device device) const {
  const c10::cuda::CUDAGuard guard(device);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess)
    fail(device, error);
}

std::unique_ptr<DeviceMark> Cuda::do_mark(c10::Device device) const {
  return std::make_unique<EventMark>(device);
}

}  // namespace treadle::device_cuda
