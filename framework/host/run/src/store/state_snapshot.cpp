#include "store/state_snapshot.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

namespace treadle::internal {
namespace {

bool fits(const at::Tensor& kept, const at::Tensor& tensor) {
  return kept.scalar_type() == tensor.scalar_type() && kept.sizes() == tensor.sizes();
}

}  // namespace

void StateSnapshot::take(const StateDict& state) {
  const at::NoGradGuard no_gradients;
  taken_.clear();
  state_ = copy(state, "");
  kept_.swap(taken_);
  taken_.clear();  // what the state no longer has
}

StateDict StateSnapshot::copy(const StateDict& state, const std::string& path) {
  StateDict result(state.version());
  for (const auto& [name, value] : state.values().items())
    result.put(name, value);
  for (const auto& [name, tensor] : state.tensors())
    result.put(name, copy(tensor, path + name));
  for (const auto& [name, part] : state.parts())
    result.put(name, copy(part, path + name + "/"));
  return result;
}

at::Tensor StateSnapshot::copy(const at::Tensor& tensor, const std::string& path) {
  auto kept = kept_.extract(path);
  at::Tensor own;
  if (!kept.empty() && fits(kept.mapped(), tensor)) {
    own = kept.mapped();
  } else {
    own = at::empty(tensor.sizes(), tensor.scalar_type());
  }
  own.copy_(tensor);
  taken_.emplace(path, own);
  return own;
}

}  // namespace treadle::internal
