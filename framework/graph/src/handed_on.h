#pragma once

#include <ATen/core/Tensor.h>

/// How values go from place to place, in every graph. A kernel may round in another way where
/// numbers lie otherwise, and a sum where they are added in another order; what is said here is why
/// a compiled graph gives the bits of a dynamic one.
namespace treadle::graph {

/// What a place gives, as others get it: contiguous, as will be the gradient that comes back.
at::Tensor handed_on(at::Tensor value);

/// A value that others use, too, as one of them gets it: gradients of all that it does with the
/// value meet here before they meet the others'.
at::Tensor meeting_point(const at::Tensor& value);

}  // namespace treadle::graph
