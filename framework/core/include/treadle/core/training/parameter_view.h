#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/training/optimizer_slots.h>
#include <treadle/core/training/parameter_arena.h>

namespace treadle {

/// The numbers of one update, known to the host.
struct StepInfo {
  std::int64_t step = 1;     ///< number of this update, from 1
  double learning_rate = 0;  ///< the current rate of the schedule
  /// Factor of every gradient: 1 / weight of the batch, times the clipping factor.
  double gradient_scale = 1;
};

/// The same numbers on the device of the parameters, where the host does not wait for them.
struct StepTensors {
  at::Tensor learning_rate;   ///< float64 []
  at::Tensor gradient_scale;  ///< float64 []
  at::Tensor skip;            ///< bool []: the gradients are not finite, nothing may change
};

class ParameterView;

/// A part of the flat vectors that an update treats as one: views, and values that replace them.
///
/// While a step is skipped the setters leave every bit as it is, without the host knowing. So write
/// through them, and compute new values instead of changing tensors in place.
class ParameterPiece {
 public:
  const at::Tensor& parameters() const { return parameters_; }
  /// Multiplied by the gradient scale.
  const at::Tensor& gradients() const;
  /// A per-element slot in the shape of parameters(). Of a layer also a per-segment slot, float64
  /// [], and a kTensor in its shape. One of 8 bits is read into the parameters' dtype, once a step.
  const at::Tensor& slot(std::size_t slot) const;
  /// The first one of a run; the one of a layer.
  const Segment& segment() const { return *segment_; }
  /// How often this piece was updated, with this update: float64 [].
  const at::Tensor& updates() const { return updates_; }

  void set_parameters(const at::Tensor& value) const;
  void set_slot(std::size_t slot, const at::Tensor& value) const;

 private:
  friend class ParameterView;
  ParameterPiece() = default;

  ParameterView* view_ = nullptr;
  const Segment* segment_ = nullptr;
  at::Tensor parameters_;
  at::Tensor raw_gradients_;
  mutable at::Tensor gradients_;                   // scaled; undefined: not yet in this step
  mutable std::vector<at::Tensor> slots_;          // of 8 bits: undefined: not yet in this step
  std::vector<BlockQuantizer::Quantized> packed_;  // those of 8 bits
  at::Tensor updates_;
};

/// Pointers to the flat vectors, for rules with loops of their own on a CPU. A segment covers
/// elements [offset, offset + size) of each.
class HostParameters {
 public:
  at::ScalarType dtype() const { return arena_.dtype(); }
  std::span<const Segment> segments() const { return arena_.segments(); }
  const StepInfo& info() const { return info_; }

  /// Expects T to be the dtype: float or double.
  template <typename T>
  T* parameters() const {
    return arena_.parameters().data_ptr<T>();
  }
  /// Not scaled yet: multiply each by info().gradient_scale first.
  template <typename T>
  const T* gradients() const {
    return arena_.gradients().data_ptr<T>();
  }
  /// A per-element slot of full storage, by its position in slots().
  template <typename T>
  T* elements(std::size_t slot) const {
    return slots_.tensor(slot).data_ptr<T>();
  }
  /// Of a kTensor, the part of the segment at `index` of segments().
  template <typename T>
  T* elements(std::size_t slot, std::size_t index) const {
    return elements<T>(slot) + slots_.place(slot, index).offset;
  }
  /// A per-segment slot (one number a segment, same order as segments()) or a scalar (one number).
  double* numbers(std::size_t slot) const { return slots_.tensor(slot).data_ptr<double>(); }
  /// How often each segment was updated, with this update.
  std::span<const double> updates() const;

 private:
  friend class ParameterView;
  HostParameters(ParameterArena& arena, OptimizerSlots& slots) : arena_(arena), slots_(slots) {}

  ParameterArena& arena_;
  OptimizerSlots& slots_;
  StepInfo info_;
};

/// The operands of an update: parameters of one optimizer, their gradients and its slots, as flat
/// vectors of one dtype and device. Where the module's parameters have 16 bits these are their
/// float32 masters.
///
/// Two ways to use it. As *tensors*, which works on every device: runs() for rules that treat each
/// element alike, layers() for rules with a number per layer. As *pointers*, on a CPU: host().
///
/// Made by the framework, one a training and optimizer; kept, so that its views are made once.
/// [training thread]
class ParameterView {
 public:
  enum class Path {
    kFastest,  ///< pointers where the device is a CPU
    kTensors   ///< tensors only, as on any other device: for comparisons
  };

  /// Both outlive it.
  ParameterView(ParameterArena& arena, OptimizerSlots& slots, Path path = Path::kFastest);
  ~ParameterView();
  ParameterView(const ParameterView&) = delete;
  ParameterView& operator=(const ParameterView&) = delete;

  at::ScalarType dtype() const { return arena_.dtype(); }
  c10::Device device() const { return arena_.parameters().device(); }

  /// float64 [], on the device.
  const at::Tensor& learning_rate();

  /// Active segments that follow each other and were updated equally often, with the padding
  /// between them (zero, and zero afterwards by every rule that maps zeros to zero): [n] each. As
  /// few pieces as possible.
  std::span<const ParameterPiece> runs();
  /// Each active segment by itself, in its shape.
  std::span<const ParameterPiece> layers();
  /// A scalar slot: float64 [].
  at::Tensor scalar(std::size_t slot) const;
  void set_scalar(std::size_t slot, const at::Tensor& value);

  /// Pointers to the same vectors; null unless this step may be made on the host.
  const HostParameters* host() const { return may_use_host_ ? &host_ : nullptr; }
  /// The same for a rule that has only a loop for the CPU: a TrainingError names the device.
  const HostParameters& require_host() const;

  // For the framework.

  /// Before an update with numbers of the host. Counts the update for every active segment.
  void begin_step(const StepInfo& info);
  /// Before an update with numbers on the device. Never waits for it.
  void begin_step(const StepTensors& step);

 private:
  friend class ParameterPiece;

  void note_active();
  void make_runs();
  void make_layers();
  ParameterPiece piece(std::int64_t begin, std::int64_t size, std::size_t first_segment);
  void write(const at::Tensor& target, const at::Tensor& value) const;
  void make_mask();
  void make_numbers();
  void forget_values();

  ParameterArena& arena_;
  OptimizerSlots& slots_;
  const bool is_host_;
  bool may_use_host_ = false;
  HostParameters host_;
  StepTensors step_;
  StepTensors own_;  // where a host's numbers are put for tensor operations
  bool has_numbers_ = false;

  std::vector<bool> active_;      // segments, as of the last step
  std::uint64_t generation_ = 0;  // of the slots, as of the last step
  at::Tensor mask_;               // float64 [segments]: 1 where active; undefined: not made yet
  std::vector<ParameterPiece> runs_;
  std::vector<ParameterPiece> layers_;
  bool has_runs_ = false;
  bool has_layers_ = false;
};

}  // namespace treadle
