#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

/// Memory that the host cannot read: protected pages of this process. A host access that no one
/// opened ends the process with a segmentation fault, so code that would read a GPU's memory fails
/// on every machine.
namespace treadle::far {

inline constexpr c10::DeviceType kType = c10::DeviceType::HIP;

/// What the device has: FAR_DEVICE_MEMORY bytes, else 4 GiB.
std::int64_t memory_bytes();

/// Counts a call of an operator. From call number FAR_DEVICE_FAILS_AT on the device is gone, for as
/// long as the variable is set: throws what libtorch throws.
void count_call();
bool is_gone();

/// Bytes that are allocated now, and the most there ever were since the last reset_peak().
struct Usage {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;
};
Usage usage();
void reset_peak();

/// The allocator of the device. Thread-safe.
c10::Allocator& allocator();

/// Lets the host read and write the memory of a tensor for as long as it lives. Nests; threads may
/// open one memory at once. A tensor of the host has nothing to open.
class Opened {
 public:
  explicit Opened(const at::Tensor& tensor);
  ~Opened();
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  /// The same memory as a tensor of the host. Valid while this lives.
  const at::Tensor& host() const { return host_; }

 private:
  void* data_ = nullptr;  // null: nothing to open
  at::Tensor host_;
};

/// The same for the whole block that begins at `data`.
class OpenedBlock {
 public:
  explicit OpenedBlock(void* data);
  ~OpenedBlock();
  OpenedBlock(const OpenedBlock&) = delete;
  OpenedBlock& operator=(const OpenedBlock&) = delete;

 private:
  void* data_;
};

}  // namespace treadle::far
