#include "far_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

namespace treadle::far {
namespace {

constexpr std::size_t kPage = 4096;

struct Block {
  std::size_t bytes = 0;  // whole pages
  int opened = 0;
};

/// Every block, by where it begins. Blocks are kept until their tensors are gone, which may be at
/// the very end of the process: never destroyed.
struct Blocks {
  std::mutex mutex;
  std::unordered_map<void*, Block> all;
  Usage usage;
};

Blocks& blocks() {
  static Blocks* const kBlocks = new Blocks;
  return *kBlocks;
}

void release(void* data) {
  Blocks& known = blocks();
  const std::lock_guard lock(known.mutex);
  const auto block = known.all.find(data);
  known.usage.in_use -= static_cast<std::int64_t>(block->second.bytes);
  ::munmap(data, block->second.bytes);
  known.all.erase(block);
}

class FarAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(std::size_t size) const override {
    const c10::Device device(kType, 0);
    if (size == 0)
      return {nullptr, nullptr, &release_nothing, device};
    const std::size_t bytes = (size + kPage - 1) / kPage * kPage;
    const std::int64_t in_use = usage().in_use;
    TORCH_CHECK_WITH(OutOfMemoryError, in_use + static_cast<std::int64_t>(bytes) <= memory_bytes(),
                     "Tried to allocate ", bytes, " bytes (", memory_bytes() - in_use, " free)");
    void* const data = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      throw std::bad_alloc();
    Blocks& known = blocks();
    const std::lock_guard lock(known.mutex);
    known.all[data] = {bytes, 0};
    known.usage.in_use += static_cast<std::int64_t>(bytes);
    known.usage.peak = std::max(known.usage.peak, known.usage.in_use);
    return {data, data, &release, device};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static void release_nothing(void*) {}
};

void change(void* data, int by) {
  Blocks& known = blocks();
  const std::lock_guard lock(known.mutex);
  Block& block = known.all.at(data);
  const bool was_open = block.opened > 0;
  block.opened += by;
  const bool is_open = block.opened > 0;
  if (is_open != was_open)
    ::mprotect(data, block.bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace

std::int64_t memory_bytes() {
  const char* const given = std::getenv("FAR_DEVICE_MEMORY");
  return given == nullptr ? std::int64_t{4} << 30 : std::strtoll(given, nullptr, 10);
}

namespace {
std::atomic<std::int64_t> calls{0};
}

bool is_gone() {
  const char* const at = std::getenv("FAR_DEVICE_FAILS_AT");
  return at != nullptr && calls >= std::strtoll(at, nullptr, 10);
}

void count_call() {
  if (std::getenv("FAR_DEVICE_FAILS_AT") == nullptr) {
    calls = 0;
    return;
  }
  ++calls;
  TORCH_CHECK(!is_gone(), "far error: the device has fallen off the bus");
}

Usage usage() {
  const std::lock_guard lock(blocks().mutex);
  return blocks().usage;
}

void reset_peak() {
  const std::lock_guard lock(blocks().mutex);
  blocks().usage.peak = blocks().usage.in_use;
}

c10::Allocator& allocator() {
  static FarAllocator* const kAllocator = new FarAllocator;
  return *kAllocator;
}

OpenedBlock::OpenedBlock(void* data) : data_(data) {
  change(data_, 1);
}

OpenedBlock::~OpenedBlock() {
  change(data_, -1);
}

Opened::Opened(const at::Tensor& tensor) {
  if (tensor.is_cpu()) {
    host_ = tensor;
    return;
  }
  data_ = tensor.storage().data_ptr().get();
  if (data_ != nullptr)
    change(data_, 1);
  auto* const first = static_cast<char*>(data_) +
                      tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize());
  host_ = at::from_blob(data_ == nullptr ? nullptr : first, tensor.sizes(), tensor.strides(),
                        at::TensorOptions().dtype(tensor.dtype()));
}

Opened::~Opened() {
  host_ = at::Tensor();
  if (data_ != nullptr)
    change(data_, -1);
}

}  // namespace treadle::far
