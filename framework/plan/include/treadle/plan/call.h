#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::plan {

struct Run;

/// The context of the calls of one forward: states of the stream, its stop. Its type is private to
/// the code that adds calls to a program; a Run holds it during a forward.
class CallContext {
 public:
  CallContext() = default;
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;

 protected:
  ~CallContext() = default;
};

/// Work that a plan runs as a whole and autograd differentiates: a layer that cannot be lowered, a
/// node with control flow, branches that run concurrently. Implemented by the owner of the layers
/// (framework/graph). It refers to them, so a program must not be run after its owner is gone.
class PlanCall {
 public:
  virtual ~PlanCall();

  /// Appends result_count() tensors to `results`, recorded by autograd if recording is on. `inputs`
  /// may have undefined tensors. May be called on several threads, each with a run of its own.
  virtual void call(std::span<const at::Tensor> inputs, Run& run,
                    std::vector<at::Tensor>& results) const = 0;
  virtual std::size_t result_count() const { return 1; }

  /// Parameters that it may use, in the order of the module; duplicates allowed.
  virtual std::vector<at::Tensor> parameters() const = 0;

  /// Within a catch: rethrows what is wrong with one of its results, with the part of the call that
  /// it comes from.
  [[noreturn]] virtual void rethrow_from_result(std::size_t result,
                                                std::span<const at::Tensor> inputs) const;
};

}  // namespace treadle::plan
