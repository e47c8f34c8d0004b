#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/core/parameter_arena.h>
#include <treadle/core/state_dict.h>

namespace treadle {

/// One slot of optimizer state, and its size.
struct SlotSpec {
  enum class Kind {
    kPerElement,  ///< a vector as long as the parameters: a momentum
    kPerSegment,  ///< one float64 per segment: a step count
    kScalar       ///< one float64 for everything
  };
  std::string name;
  Kind kind = Kind::kPerElement;
  double initial = 0;
};

/// The numbers of one update.
struct StepInfo {
  std::int64_t step = 1;     ///< number of this update, from 1
  double learning_rate = 0;  ///< the current rate of the schedule
  /// Multiply every gradient by this first: 1 / weight of the batch, times the clipping factor.
  double gradient_scale = 1;
};

/// The slots of one optimizer for one arena. The framework makes, saves, moves and restores them; a
/// plugin only declares and uses them.
class OptimizerSlots : public Stateful {
 public:
  OptimizerSlots(std::vector<SlotSpec> specs, const ParameterArena& arena);
  ~OptimizerSlots() override;

  std::size_t count() const { return specs_.size(); }
  /// Per element: the arena's dtype [arena.size()]; per segment: float64 [segments]; scalar:
  /// float64 [1].
  at::Tensor& tensor(std::size_t slot) { return tensors_[slot]; }
  std::int64_t bytes() const;

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<SlotSpec> specs_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::string> segment_names_;
};

/// What an update works on: flat vectors of one dtype and device, cut into segments. Where the
/// module's parameters have 16 bits these are their float32 masters.
///
/// `data<T>()` pointers are to the whole vector; a segment covers [offset, offset + size).
/// Element-wise rules run over them; per-layer rules (LAMB) use the views.
class Block {
 public:
  Block(ParameterArena& arena, OptimizerSlots& slots) : arena_(arena), slots_(slots) {}

  at::ScalarType dtype() const { return arena_.dtype(); }
  std::span<const Segment> segments() const { return arena_.segments(); }

  /// Expects T to be the dtype: float or double.
  template <typename T>
  T* parameters() const {
    return arena_.parameters().data_ptr<T>();
  }
  template <typename T>
  const T* gradients() const {
    return arena_.gradients().data_ptr<T>();
  }
  /// A per-element slot, by its position in slots().
  template <typename T>
  T* elements(std::size_t slot) const {
    return slots_.tensor(slot).data_ptr<T>();
  }
  /// A per-segment slot (one number a segment, same order as segments()) or a scalar (one number).
  double* numbers(std::size_t slot) const { return slots_.tensor(slot).data_ptr<double>(); }

  at::Tensor parameter(const Segment& segment) const { return arena_.parameter(segment); }
  at::Tensor gradient(const Segment& segment) const { return arena_.gradient(segment); }
  /// View of a per-element slot in the segment's shape.
  at::Tensor slot(std::size_t slot, const Segment& segment) const;

 private:
  friend class Optimizer;

  ParameterArena& arena_;
  OptimizerSlots& slots_;
};

/// An update rule from gradients to parameters: a function on flat vectors.
///
/// It holds no state of its own: it declares state in slots(), which the framework owns, saves and
/// restores. A segment that is not active() must be left alone, its slots and weight decay
/// included; update() is not called at all for a step whose gradients are not finite.
class Optimizer : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.optimizer/0";

  ~Optimizer() override;

  /// The base rate, which schedules scale.
  double learning_rate() const;

  std::vector<SlotSpec> slots() const;

  /// One update of every active segment. Reads gradients, never writes them. No gradients are
  /// recorded. [training thread]
  void update(Block& block, const StepInfo& info) const;

 private:
  virtual double do_learning_rate() const = 0;
  virtual std::vector<SlotSpec> do_slots() const = 0;
  virtual void do_update(Block& block, const StepInfo& info) const = 0;
};

/// Parameters with an optimizer of their own: another rate, no decay. What it points to is
/// borrowed.
struct ParameterGroup {
  const Optimizer* optimizer = nullptr;
  std::vector<std::string> parameters;  ///< names of segments
};

}  // namespace treadle
