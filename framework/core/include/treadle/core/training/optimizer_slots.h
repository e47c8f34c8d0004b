#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/precision/block_quantization.h>
#include <treadle/core/training/parameter_arena.h>

namespace treadle {

/// One slot of optimizer state, and its size.
struct SlotSpec {
  enum class Kind {
    kPerElement,  ///< a vector as long as the parameters: a momentum
    kPerSegment,  ///< one float64 per segment
    kScalar,      ///< one float64 for everything
    kTensor       ///< a tensor per segment, of the shape that `shape` gives
  };
  /// Of a slot per element.
  enum class Storage {
    kFull,            ///< the parameters' dtype
    kEightBits,       ///< see block_quantization.h; `initial` is 0
    kEightBitsNoSign  ///< the same for numbers that are never negative: a second moment
  };
  std::string name;
  Kind kind = Kind::kPerElement;
  double initial = 0;
  Storage storage = Storage::kFull;
  /// Of a kTensor: the statistics of a matrix's rows, say. A function of the segment's shape and
  /// role; {0} where a segment needs none.
  std::function<std::vector<std::int64_t>(const Segment&)> shape = {};
};

/// The slots of one optimizer for one arena, and how often each segment was updated. The framework
/// makes, saves, moves and restores them; a plugin only declares and uses them. All are on the
/// device of the parameters.
class OptimizerSlots : public Stateful {
 public:
  /// Expects an arena with alignment_of(specs). `members`, an entry a segment: a kTensor takes
  /// memory for these alone; empty: for all.
  OptimizerSlots(std::vector<SlotSpec> specs, const ParameterArena& arena,
                 const std::vector<bool>& members = {});
  /// The alignment of an arena's segments, in elements: 1, or a block of 8 bits.
  static std::int64_t alignment_of(const std::vector<SlotSpec>& specs);
  ~OptimizerSlots() override;

  std::size_t count() const { return specs_.size(); }
  const SlotSpec& spec(std::size_t slot) const { return specs_[slot]; }
  /// Per element: the arena's dtype [arena.size()], or uint8 where it has 8 bits; per segment:
  /// float64 [segments]; scalar: float64 [1]; of a kTensor all, with padding: the arena's dtype.
  at::Tensor& tensor(std::size_t slot) { return tensors_[slot]; }
  const at::Tensor& tensor(std::size_t slot) const { return tensors_[slot]; }
  /// Of a kTensor, the part of a segment.
  struct Place {
    std::vector<std::int64_t> shape;
    std::int64_t offset = 0;  ///< in elements; a multiple of 64 bytes
    std::int64_t size = 0;    ///< in elements, without padding
  };
  const Place& place(std::size_t slot, std::size_t segment) const { return places_[slot][segment]; }
  /// A view of its shape.
  at::Tensor tensor_of(std::size_t slot, std::size_t segment) const;
  /// How a slot of 8 bits is read and written; null for others.
  const BlockQuantizer* quantizer(std::size_t slot) const { return quantizers_[slot].get(); }
  /// Of a slot of 8 bits: float32 [arena.size() / BlockQuantizer::kBlock].
  const at::Tensor& scales(std::size_t slot) const { return scales_[slot]; }
  /// From now on `slot` is `its` slot of `other`.
  void share(std::size_t slot, const OptimizerSlots& other, std::size_t its);

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
  std::vector<std::vector<Place>> places_;  // by segment; empty: no kTensor
  std::vector<std::shared_ptr<const BlockQuantizer>> quantizers_;
  std::vector<at::Tensor> scales_;  // undefined: not of 8 bits
  at::Tensor updates_;
  std::vector<int> cohorts_;  // by segment
  std::uint64_t generation_ = 0;
  std::vector<std::string> segment_names_;
};

}  // namespace treadle
