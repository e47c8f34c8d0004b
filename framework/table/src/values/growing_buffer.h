#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

namespace treadle::table {

/// An array of numbers that grows at its end and becomes a tensor without being copied. Large
/// blocks are moved by remapping pages, so growing needs no second copy either, and what has been
/// set aside but not written costs no memory.
template <typename T>
class GrowingBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingBuffer() = default;
  ~GrowingBuffer() { std::free(data_); }
  GrowingBuffer(GrowingBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  GrowingBuffer& operator=(GrowingBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  std::size_t size() const { return size_; }
  T* data() { return data_; }

  /// Where the next `count` values go; valid until the next call. They count once commit() is
  /// called.
  T* room(std::size_t count) {
    if (size_ + count > capacity_) [[unlikely]]
      reserve(std::max(size_ + count, 2 * capacity_));
    return data_ + size_;
  }
  void commit(std::size_t count) { size_ += count; }

  void push(T value) {
    *room(1) = value;
    commit(1);
  }

  /// The values as a tensor that owns them. The buffer is empty then.
  at::Tensor release(at::IntArrayRef shape, at::ScalarType dtype) {
    if (size_ == 0)
      return at::empty(shape, dtype);
    reserve(size_);
    capacity_ = size_ = 0;
    return at::from_blob(
        std::exchange(data_, nullptr), shape, [](void* data) { std::free(data); }, dtype);
  }

 private:
  void reserve(std::size_t capacity) {
    void* const moved = std::realloc(data_, capacity * sizeof(T));
    if (moved == nullptr)
      throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace treadle::table
