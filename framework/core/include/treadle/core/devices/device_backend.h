#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <treadle/base/component.h>
#include <treadle/core/devices/device_mark.h>

namespace treadle {

/// One device: where tensors live and operators run.
struct DeviceInfo {
  /// As tensors name it: with an index where libtorch counts devices of this type.
  c10::Device device = c10::kCPU;
  std::string name = {};          ///< of the hardware: "NVIDIA H100 80GB HBM3"
  std::int64_t memory_bytes = 0;  ///< all of it; 0: unknown
  std::string driver = {};        ///< with its version: "CUDA 12.4"; empty: it has none
  /// For a CPU: steps are made of tensor operations alone, as on an accelerator, to compare with.
  bool tensors_only = false;
};

/// The devices of a backend on this machine.
struct FoundDevices {
  std::vector<DeviceInfo> devices = {};  ///< "cuda:1" of a document is the second
  /// Where there are none: what is missing, and how to get it.
  std::string why_none = {};
};

/// Memory of a device that this process has taken, in bytes.
struct DeviceMemory {
  std::int64_t in_use = 0;     ///< by tensors
  std::int64_t peak = 0;       ///< the most there were in use since reset_peak()
  std::int64_t reserved = 0;   ///< kept from the system, to be used again; at least in_use
  std::int64_t available = 0;  ///< what tensors could still take; 0: unknown
};

/// Work that a device has recorded (a CUDA graph), to be done again at the cost of one call. Keeps
/// the memory that the work uses.
class CapturedWork {
 public:
  virtual ~CapturedWork();
  /// Enqueues all of it on this thread's stream. It reads and writes the memory that it was
  /// recorded with, and draws from the same generators, as they are seeded now.
  virtual void replay() = 0;
};

/// A kind of device that models can be trained on. A document names it, in `resources.device`:
/// "cuda" or "cuda:1" is the component `cuda` of this interface.
///
/// Kernels, random generators, streams and events are libtorch's, the last two through its guard
/// for the device type (c10::impl::DeviceGuardImplInterface). A backend supplies the rest.
/// Stateless and thread-safe: all fits of a process share a device.
class DeviceBackend : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.device/0";

  ~DeviceBackend() override;

  /// The devices there are now. Throws nothing for a machine that has none: see why_none.
  FoundDevices find() const;

  /// A tensor of the host with the same values, in memory from which the device copies while the
  /// host goes on (page-locked); the tensor itself where it lies in such memory already, or where
  /// the device has no need of it. Expects a tensor on the CPU.
  at::Tensor staged(const at::Tensor& host) const;

  DeviceMemory memory(c10::Device device) const;
  void reset_peak(c10::Device device) const;

  /// Returns when everything that was enqueued on `device` has been done. Throws a TrainingError
  /// where some of it failed: an operator that a device could not carry out, a device that is gone.
  void synchronize(c10::Device device) const;

  /// Whether capture() records work. A device that does not is used without.
  bool can_capture() const;

  /// Records what `work` enqueues on this thread's stream, which is not the device's default one,
  /// and what its backward passes enqueue. Nothing of it is done: memory that was there before
  /// keeps its values. `generators` are those from which it draws random numbers.
  ///
  /// Throws what `work` throws; a TrainingError where something in it cannot be recorded, because
  /// it waits for the device or copies from the host. Expects can_capture(). One capture at a time.
  std::unique_ptr<CapturedWork> capture(c10::Device device,
                                        std::span<const at::Generator> generators,
                                        const std::function<void()>& work) const;

  /// A new mark, not recorded yet; null where the device has no clock that can be read.
  std::unique_ptr<DeviceMark> mark(c10::Device device) const;

 private:
  virtual FoundDevices do_find() const = 0;
  virtual at::Tensor do_staged(const at::Tensor& host) const { return host; }
  virtual DeviceMemory do_memory(c10::Device device) const = 0;
  virtual void do_reset_peak(c10::Device device) const = 0;
  virtual void do_synchronize(c10::Device device) const = 0;
  virtual bool do_can_capture() const { return false; }
  /// Where an operator of `work` fails because it is being recorded, `work` throws what the
  /// operator throws.
  virtual std::unique_ptr<CapturedWork> do_capture(c10::Device device,
                                                   std::span<const at::Generator> generators,
                                                   const std::function<void()>& work) const;
  virtual std::unique_ptr<DeviceMark> do_mark(c10::Device /*device*/) const { return nullptr; }
};

}  // namespace treadle
