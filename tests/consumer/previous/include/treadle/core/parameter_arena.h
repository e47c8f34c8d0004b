#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace treadle {

/// One parameter's place in an arena block. Tied parameters share one segment.
struct Segment {
  std::string name;                 ///< as named_parameters() says it; the first name when tied
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;          ///< in elements; a multiple of 64 bytes
  std::int64_t size = 0;            ///< in elements, without the padding after it
  bool frozen = false;              ///< requires_grad is off: never updated
  bool touched = false;             ///< the last backward wrote its gradient
  bool active() const { return touched && !frozen; }
};

/// All parameters of one model in one block of memory, and all gradients in another.
///
/// Adopting a module points every parameter's data, and its gradient, into the block; the module works as before. An
/// update is then a pass over flat vectors instead of a walk over tensors. Each segment starts on a
/// 64-byte boundary; the padding between segments is zero and stays zero.
///
/// A parameter that moves away (`to(float64)`, an assignment to `.grad`, `zero_grad(set_to_none)`) leaves the
/// arena without a word; collect() notices and says so. Not thread-safe: one training thread owns it.
class ParameterArena {
 public:
  /// Adopts every parameter of `module`. All must have one dtype (float32 or float64) and device; throws
  /// TrainingError naming the odd one otherwise. The arena keeps handles to the parameters, not to the module.
  explicit ParameterArena(torch::nn::Module& module);
  ~ParameterArena();
  ParameterArena(ParameterArena&&) noexcept;
  ParameterArena& operator=(ParameterArena&&) noexcept;

  at::ScalarType dtype() const { return flat_.scalar_type(); }
  /// Elements with padding: the length of parameters() and gradients().
  std::int64_t size() const { return flat_.numel(); }
  /// Elements without padding, tied ones once.
  std::int64_t parameter_count() const;
  /// What the arena holds, in bytes: parameters and gradients.
  std::int64_t bytes() const;

  const at::Tensor& parameters() const { return flat_; }   ///< [size()], no autograd
  const at::Tensor& gradients() const { return gradients_; }  ///< [size()], no autograd
  std::span<const Segment> segments() const { return segments_; }

  at::Tensor parameter(const Segment& segment) const;  ///< view of its shape
  at::Tensor gradient(const Segment& segment) const;

  /// Forgets all gradients: zeroes them, marks every segment untouched. Before the first backward of a step.
  void zero_gradients();

  /// After the last backward of a step: finds out which segments were written, and whether every
  /// parameter still lives here. A parameter whose gradient was put elsewhere is copied in and re-adopted;
  /// one whose data moved is a TrainingError that names it.
  void collect();

 private:
  struct Parameter;

  at::Tensor flat_;
  at::Tensor gradients_;
  std::vector<Segment> segments_;
  std::vector<Parameter> parameters_;
};

}  // namespace treadle
