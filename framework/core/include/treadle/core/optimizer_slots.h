#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/parameter_arena.h>
#include <treadle/core/state_dict.h>

namespace treadle {

/// One slot of optimizer state, and its size.
struct SlotSpec {
  enum class Kind {
    kPerElement,  ///< a vector as long as the parameters: a momentum
    kPerSegment,  ///< one float64 per segment
    kScalar       ///< one float64 for everything
  };
  std::string name;
  Kind kind = Kind::kPerElement;
  double initial = 0;
};

/// The slots of one optimizer for one arena, and how often each segment was updated. The framework
/// makes, saves, moves and restores them; a plugin only declares and uses them. All are on the
/// device of the parameters.
class OptimizerSlots : public Stateful {
 public:
  OptimizerSlots(std::vector<SlotSpec> specs, const ParameterArena& arena);
  ~OptimizerSlots() override;

  std::size_t count() const { return specs_.size(); }
  const SlotSpec& spec(std::size_t slot) const { return specs_[slot]; }
  /// Per element: the arena's dtype [arena.size()]; per segment: float64 [segments]; scalar:
  /// float64 [1].
  at::Tensor& tensor(std::size_t slot) { return tensors_[slot]; }
  const at::Tensor& tensor(std::size_t slot) const { return tensors_[slot]; }
  /// Updates of each segment: float64 [segments]. Steps that a segment missed do not count, so the
  /// corrections for the bias of averages are right.
  at::Tensor& updates() { return updates_; }
  std::int64_t bytes() const;

  /// Segments of one cohort have always been updated together, so their updates() are equal.
  const std::vector<int>& cohorts() const { return cohorts_; }
  /// Another number whenever cohorts() has changed.
  std::uint64_t generation() const { return generation_; }
  /// Before an update of `active` segments alone.
  void split_cohorts(const std::vector<bool>& active);

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<SlotSpec> specs_;
  std::vector<at::Tensor> tensors_;
  at::Tensor updates_;
  std::vector<int> cohorts_;  // by segment
  std::uint64_t generation_ = 0;
  std::vector<std::string> segment_names_;
};

}  // namespace treadle
