#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/tensor_spec.h>

/// A graph that was compiled, to look at. See Graph::compile().
namespace treadle::graph {

struct PlanProgram;

/// How a graph's forward is run.
enum class Execution : std::uint8_t {
  kDynamic,  ///< node by node, as the graph stands
  kCompiled  ///< as a plan, made anew for inputs of other sizes
};

/// Whose memory a slot of a plan is.
enum class PlanMemory : std::uint8_t {
  kInput,  ///< given from outside: the graph's inputs and states
  kArena,  ///< a place in the plan's one block
  kOwn,    ///< made when it is written and let go after the last use: what kernels return that make
           ///< tensors of their own, and large values beside such kernels
  kOutput  ///< made for every run, because it outlives it
};

/// One value of a plan. Slots of a reshaped value share a root's memory.
struct PlanSlotInfo {
  TensorSpec spec;
  PlanMemory memory = PlanMemory::kArena;
  std::size_t root = 0;
  std::size_t offset = 0;  ///< in the arena, in bytes; a multiple of 256
  std::size_t bytes = 0;
  /// The last instruction, forward first, that reads it; nothing for inputs, outputs and what
  /// nobody reads.
  std::optional<std::size_t> last_use;
};

struct PlanInstructionInfo {
  std::string
      operation;     ///< "linear", "add relu" for a pass of two, "call" for what is not compiled
  std::string node;  ///< "dense_0"; the outermost graph's node
  std::vector<std::size_t> inputs;  ///< slots
  std::vector<std::size_t> outputs;
  bool is_backward = false;
};

/// A node that a plan calls as it is. Its result is the same.
struct PlanCallInfo {
  std::string node;
  std::string why;
  /// What it does depends on numbers that it is given: no plan can foresee it.
  bool is_dynamic = false;
};

/// An operation whose constants became a part of another's weights.
struct PlanFoldInfo {
  std::string operation;  ///< "batch_norm"
  std::string node;       ///< whose operation that was
  std::string into;       ///< the node whose weights they are in
};

/// What a graph was compiled to for inputs of certain sizes, in one mode. Read-only.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const PlanProgram> program);

  std::vector<PlanInstructionInfo> instructions() const;
  std::vector<PlanSlotInfo> slots() const;
  std::vector<std::size_t> input_slots() const;
  std::vector<std::size_t> output_slots() const;
  /// Of the one block that all arena slots lie in, and what they would take without sharing it.
  std::size_t arena_bytes() const;
  std::size_t unshared_bytes() const;
  /// Nodes whose gradients libtorch records, and nodes that no plan can foresee.
  std::vector<PlanCallInfo> calls() const;
  std::size_t dynamic_nodes() const;
  /// What a plan for inference computes no more.
  std::vector<PlanFoldInfo> folds() const;
  /// Instructions that were element steps, and passes that they became.
  std::size_t element_steps() const;
  std::size_t element_passes() const;
  bool records_gradients() const;

  /// A table of instructions, then of what is called and why.
  std::string text() const;

 private:
  std::shared_ptr<const PlanProgram> program_;
};

}  // namespace treadle::graph
