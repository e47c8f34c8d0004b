#pragma once

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>

namespace treadle::internal {

/// A copy of a state that its owner goes on changing. The memory of the tensors is kept from one
/// copy to the next: the second of a training is one pass over its bytes and allocates none.
///
/// One thread at a time.
class StateSnapshot {
 public:
  /// Copies `state`, to the CPU; takes the place of the copy before.
  void take(const StateDict& state);

  const StateDict& state() const { return state_; }

 private:
  StateDict copy(const StateDict& state, const std::string& path);
  at::Tensor copy(const at::Tensor& tensor, const std::string& path);

  using Tensors = std::map<std::string, at::Tensor>;
  Tensors kept_;   // of the last copy, by path
  Tensors taken_;  // of the one being made
  StateDict state_;
};

}  // namespace treadle::internal
