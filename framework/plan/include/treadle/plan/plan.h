#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/model/tensor_spec.h>

/// A compiled graph, for inspection. Made by Graph::compile() (treadle/graph/graph.h).
namespace treadle::plan {

struct Program;

/// Who owns the memory of a slot.
enum class Memory : std::uint8_t {
  kInput,  ///< the caller: inputs and states of the graph
  kArena,  ///< a place in the plan's one block
  kOwn,    ///< allocated when written and freed after the last use: results of kernels that
           ///< allocate, and large values in plans that have such kernels
  kOutput  ///< allocated anew in every run, because it outlives the run
};

/// A value of a plan. Slots of a reshaped value share the memory of their root.
struct SlotInfo {
  TensorSpec spec;
  Memory memory = Memory::kArena;
  std::size_t root = 0;
  std::size_t offset = 0;  ///< in the arena, in bytes; a multiple of 256
  std::size_t bytes = 0;
  /// The last instruction that reads it, counting forward, then backward; nothing for inputs,
  /// outputs and values without readers.
  std::optional<std::size_t> last_use;
};

struct InstructionInfo {
  std::string
      operation;     ///< "linear", "add relu" for a fused kernel of two, "call" for opaque calls
  std::string node;  ///< "dense_0"; a node of the outermost graph
  std::vector<std::size_t> inputs;  ///< slots
  std::vector<std::size_t> outputs;
  bool is_backward = false;
};

/// A node that the plan calls as a whole, with the same result.
struct CallInfo {
  std::string node;
  std::string why;
  /// Its control flow depends on values, so no plan can resolve it.
  bool is_dynamic = false;
};

/// An operation whose constants were folded into the weights of another.
struct FoldInfo {
  std::string operation;  ///< "batch_norm"
  std::string node;       ///< the node that the operation belongs to
  std::string into;       ///< the node whose weights took them in
};

/// The program for inputs of given sizes, in one mode. Read-only.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const Program> program);

  std::vector<InstructionInfo> instructions() const;
  std::vector<SlotInfo> slots() const;
  std::vector<std::size_t> input_slots() const;
  std::vector<std::size_t> output_slots() const;
  /// Bytes of the block that all arena slots lie in, and their sum without sharing.
  std::size_t arena_bytes() const;
  std::size_t unshared_bytes() const;
  /// Opaque calls, which autograd differentiates, and the number of dynamic nodes among them.
  std::vector<CallInfo> calls() const;
  std::size_t dynamic_nodes() const;
  /// Operations that a plan for inference folded away.
  std::vector<FoldInfo> folds() const;
  /// Element-wise operations before fusion, and the fused kernels that they became.
  std::size_t elementwise_ops() const;
  std::size_t fused_kernels() const;
  bool records_gradients() const;

  /// A table of instructions, then folds and calls with their reasons.
  std::string text() const;

  /// For code that runs it (treadle/graph/plan_run.h).
  const std::shared_ptr<const Program>& program() const { return program_; }

 private:
  std::shared_ptr<const Program> program_;
};

}  // namespace treadle::plan
