#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "values/growing_buffer.h"

namespace treadle::table {

/// Rows of numbers that grow at their end and become a tensor without being copied: float32 as long
/// as that holds each of them exactly (NaN, a missing value, it does), else float64.
class NumberBuffer {
 public:
  std::size_t size() const { return is_wide_ ? wide_.size() : narrow_.size(); }
  /// Whether release() gives float64.
  bool is_wide() const { return is_wide_; }
  /// The numbers as they are stored; valid until the next call.
  std::span<const std::byte> bytes() {
    return is_wide_ ? std::as_bytes(std::span(wide_.data(), wide_.size()))
                    : std::as_bytes(std::span(narrow_.data(), narrow_.size()));
  }

  /// Where the next `count` numbers go; valid until the next call. They count once commit() is
  /// called.
  double* room(std::size_t count) {
    if (is_wide_)
      return wide_.room(count);
    if (row_.size() < count) [[unlikely]]
      row_.resize(count);
    return row_.data();
  }
  void commit(std::size_t count) {
    if (is_wide_) {
      wide_.commit(count);
    } else {
      commit_narrow(count);
    }
  }
  void push(double value) {
    *room(1) = value;
    commit(1);
  }

  /// The numbers as a tensor that owns them. The buffer is empty then.
  at::Tensor release(at::IntArrayRef shape) {
    return is_wide_ ? wide_.release(shape, at::kDouble) : narrow_.release(shape, at::kFloat);
  }

 private:
  void commit_narrow(std::size_t count);

  bool is_wide_ = false;
  GrowingBuffer<float> narrow_;
  GrowingBuffer<double> wide_;
  std::vector<double> row_;  // while narrow
};

}  // namespace treadle::table
