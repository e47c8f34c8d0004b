#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/abilities/names_parameter_roles.h>

namespace torch::nn {
class Module;
}

namespace treadle {

/// One parameter's place in an arena block. Tied parameters share one segment.
struct Segment {
  std::string name;  ///< as in named_parameters(); the first name when tied
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< in elements; a multiple of 64 bytes
  std::int64_t size = 0;    ///< in elements, without the padding after it
  bool frozen = false;      ///< requires_grad is off: never updated
  bool touched = false;     ///< the last backward wrote its gradient
  /// As its module and those around it name it (NamesParameterRoles); of a torch::nn::Embedding a
  /// table. The last matrix of a Model in which nothing names an output layer counts as one.
  ParameterRole role = ParameterRole::kHidden;
  bool active() const { return touched && !frozen; }
};

/// Names, sizes and roles of the segments that an arena of the module has, which is not adopted.
std::vector<Segment> segments_of(const torch::nn::Module& module);

/// All parameters of one model in one block of memory, and all gradients in another.
///
/// Adopting a module points every parameter's data, and its gradient, into the block; the module
/// works as before. An update is then a pass over flat vectors instead of a walk over tensors. Each
/// segment starts on a 64-byte boundary; the padding between segments is zero and stays zero.
///
/// Parameters of 16 bits (bfloat16, float16) keep their type in the module, and the arena keeps a
/// float32 master of each: an update changes masters, write_back() rounds them into the module.
/// Without masters an update smaller than half the distance of two such numbers, up to 1/256 of the
/// weight for bfloat16, would change nothing.
///
/// A parameter that moves away (`to(float64)`, an assignment to `.grad`, `zero_grad(set_to_none)`)
/// leaves the arena silently; collect() detects and reports this. Not thread-safe: one training
/// thread owns it.
class ParameterArena {
 public:
  /// Adopts every parameter of `module`. All must have one dtype (float32, float64, bfloat16 or
  /// float16) and device; throws TrainingError naming the odd one otherwise. The arena keeps
  /// handles to the parameters, not to the module. Segments begin at multiples of `alignment`
  /// elements, and of 64 bytes.
  explicit ParameterArena(torch::nn::Module& module, std::int64_t alignment = 1);

  /// Adopts a replica of the module that `primary` adopted: its parameters become views of the same
  /// numbers, its gradients lie in a block of its own, so both can be back-propagated at once.
  /// `primary`'s block lives on for as long as the replica's arena does. Throws TrainingError when
  /// the two differ in a name, a shape or a tie.
  ParameterArena(torch::nn::Module& replica, const ParameterArena& primary);
  ~ParameterArena();
  ParameterArena(ParameterArena&&) noexcept;
  ParameterArena& operator=(ParameterArena&&) noexcept;

  /// Of parameters() and gradients(): the module's, or float32 where that has 16 bits.
  at::ScalarType dtype() const { return flat_.scalar_type(); }
  /// Elements: what segments begin at multiples of, besides 64 bytes.
  std::int64_t alignment() const { return alignment_; }
  /// The module's parameters have 16 bits: parameters() are not theirs.
  bool has_masters() const;
  /// Elements with padding: the length of parameters() and gradients().
  std::int64_t size() const { return flat_.numel(); }
  /// Elements without padding, tied ones once.
  std::int64_t parameter_count() const;
  /// The size of the arena in bytes: parameters and gradients, those of 16 bits included.
  std::int64_t bytes() const;

  const at::Tensor& parameters() const { return flat_; }      ///< [size()], no autograd
  const at::Tensor& gradients() const { return gradients_; }  ///< [size()], no autograd
  std::span<const Segment> segments() const { return segments_; }

  at::Tensor parameter(const Segment& segment) const;  ///< view of its shape
  at::Tensor gradient(const Segment& segment) const;
  /// Of the module, where it has masters: a view for who puts values back that were there before. A
  /// write through it is no change by the model, which the next collect() would round the master
  /// to.
  at::Tensor narrow_parameter(const Segment& segment) const;

  /// Rounds masters into the module, to nearest, ties to even; nothing to do without masters. After
  /// whatever wrote to parameters(): Optimizer::update() does it itself.
  void write_back();

  /// Clears all gradients: zeroes them, marks every segment untouched. Before the first backward of
  /// a step.
  void zero_gradients();

  /// After the last backward of a step: finds out which segments were written, and whether every
  /// parameter still lives here. A parameter whose gradient was put elsewhere is copied in and
  /// re-adopted; one whose data moved is a TrainingError that names it. What the module wrote into
  /// a parameter of 16 bits itself, because it was loaded or clamps its weights, becomes the
  /// master; what it wrote past libtorch's count of versions, through data(), does not.
  void collect();

  /// For a replica, before zero_gradients(): freezes what `primary` froze.
  void freeze_like(const ParameterArena& primary);
  /// After collect() on all of them: adds the gradients of `replicas`, and marks the segments
  /// touched that any of them touched. These and the replicas' are added by the tree of
  /// sum_tree.h. Element by element, so the sum does not depend on how the work is divided:
  /// `for_ranges(size, sum)` calls `sum(begin, end)` for pieces of [0, size), from any threads, and
  /// returns when all are done.
  using Ranges = std::function<void(std::int64_t size,
                                    const std::function<void(std::int64_t, std::int64_t)>& sum)>;
  void add_gradients(std::span<const ParameterArena* const> replicas, const Ranges& for_ranges);

  /// Marks segments (one entry each) touched: those whose gradients came from another process.
  void touch(const std::vector<bool>& segments);

  /// Calls `work` with every segment untouched that `members` (one entry a segment) leaves out: for
  /// updates of a part.
  void with_only(const std::vector<bool>& members, const std::function<void()>& work);

 private:
  struct Adopted;

  void lay_out(torch::nn::Module& module);
  void adopt(bool copy_values);

  at::Tensor flat_;
  at::Tensor gradients_;
  std::vector<Segment> segments_;
  std::int64_t alignment_ = 1;
  std::unique_ptr<Adopted> adopted_;
};

}  // namespace treadle
