#pragma once

#include <ATen/core/Tensor.h>

/// The order in which gradients are added. Floating-point sums depend on it, and a graph gives the
/// same bits whether it runs node by node, with concurrent branches, or as a plan. All three keep
/// these rules:
///
/// 1. Where several users of a value send gradients back, that of the last user (in the order of
///    nodes) comes first, and the others are added to it one by one. This is autograd's own order:
///    it runs the nodes of a thread from the last recorded to the first. A plan does it in
///    plan/src/backward.cpp, concurrent branches in Fork::sum_of() (branches.cpp).
/// 2. All that one user does with a value is summed before it is added to what others sent. For
///    this, a value with several users reaches each of them through accumulation_point().
/// 3. Branches of a group are one user of a source: their sources pass one accumulation point for
///    the group, and one for each branch.
/// 4. Values and their gradients are contiguous on every edge (contiguous_with_gradient()): kernels
///    may round otherwise for other strides.
/// 5. Gradients of parameters are summed in the reverse order of use, starting from zeros; what
///    grad() holds from before is added at the end. Branches that share parameters do not run
///    concurrently (find_branch_groups()), nor do those that use a weight several times within a
///    body that repeats: their sums would associate otherwise.
namespace treadle::graph {

/// The result of a place as its users get it: contiguous, and with a hook that makes the gradient
/// that comes back contiguous, too.
at::Tensor contiguous_with_gradient(at::Tensor value);

/// A shared value as one of its users gets it: a view, so that autograd sums all gradients of this
/// user before it adds them to those of the others.
at::Tensor accumulation_point(const at::Tensor& value);

}  // namespace treadle::graph
