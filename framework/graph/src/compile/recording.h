#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/plan/op.h>

#include "run/forward_scope.h"
#include "run/node.h"

namespace treadle::graph {

/// What is to be recorded, and for what.
struct ToRecord {
  const Callee& callee;
  const ForwardScope& scope;
  std::span<const at::Tensor> inputs;
  std::vector<bool> wanted;  ///< per input: whether its gradient is required
  bool records_gradients = false;
};

/// A module that knows nothing of plans as an operation: the calls of primitive operators that one
/// forward and its backward make, with the same arguments. Null, with the reason, where they cannot
/// be replayed: sizes or branches that depend on numbers, random numbers, writes to inputs or
/// parameters, tensors from elsewhere. Compared with the module on other numbers before it is
/// returned: same bits, or null.
///
/// Calls the module a few times, with random numbers of their own. Buffers are left as they were.
std::shared_ptr<const PlanOp> record(const ToRecord& what, std::string& why);

}  // namespace treadle::graph
