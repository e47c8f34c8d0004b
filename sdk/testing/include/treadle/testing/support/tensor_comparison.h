#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

/// Tensors beside tensors, with messages that name the worst element.
namespace treadle::testing {

/// How far apart two numbers may be: each of the three is enough.
struct Closeness {
  double relative = 0;
  double absolute = 0;
  double ulps = 0;  ///< representable numbers from one to the other, in the tensors' dtype
};

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);

/// "[2, 1]": where the element `flat` of a contiguous tensor of these sizes lies.
std::string index_text(std::int64_t flat, at::IntArrayRef sizes);

/// Whether two tensors have one shape and dtype and numbers as close as `allowed` says; the default
/// allows no difference at all. NaN equals NaN.
::testing::AssertionResult values_match(const at::Tensor& got, const at::Tensor& expected,
                                        const Closeness& allowed = {});

}  // namespace treadle::testing
