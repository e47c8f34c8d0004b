#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <treadle/core/model/tensor_spec.h>
#include <treadle/plan/fused_kernel.h>
#include <treadle/plan/plan.h>

namespace torch::nn {
class Module;
}

namespace treadle {
class PlanOp;
}

/// The intermediate representation: instructions over slots. Needed by what lowers to it, runs it
/// (framework/graph/src/compile) or transforms it (passes.h); everybody else reads a Plan (plan.h).
///
/// Life of a program: lowering appends slots and forward instructions, complete() (passes.h) adds
/// the backward and decides where values lie, and from then on it is read-only and shared by
/// threads, except for its pool of runs.
namespace treadle::plan {

class PlanCall;
struct Run;

using SlotId = std::size_t;
inline constexpr SlotId kNoSlot = static_cast<SlotId>(-1);

/// Where an instruction comes from, for errors and for people.
struct Site {
  /// A stop of an error on its way out.
  struct Step {
    std::string place;        ///< "node "dense_0"", "round 2"
    std::string text_before;  ///< of a node: what failed, on which inputs; empty for other steps
    bool is_node = true;
  };
  /// The outermost graph's place whose time the instruction counts to; nothing where a call times
  /// several of them itself.
  std::optional<std::size_t> top_place;
  std::string node;       ///< the name of the node there
  std::vector<Step> way;  ///< innermost first
};

/// A call within a stretch.
struct CallStep {
  std::shared_ptr<const PlanCall> call;
  /// Where an input comes from: an input of the stretch, or a result of an earlier call in it.
  struct Source {
    bool is_call = false;
    std::size_t index = 0;  ///< kNoSlot: absent
  };
  std::vector<Source> inputs;
  std::size_t site = 0;
};

struct Instruction {
  enum class Kind : std::uint8_t {
    kOperation,
    kFusedKernel,        ///< one element-wise operation until fuse_elementwise()
    kCalls,              ///< a stretch of calls; outputs: the results of each call, in order
    kOperationGradient,  ///< inputs: the output's gradient, then backward_reads(), then kept;
                         ///< outputs: gradients of the inputs
    kCallsGradient,      ///< inputs: gradients of the results; outputs: of the leaves
    kDrawSeed,           ///< at the beginning of a graph with branches
    kEnterBranch,
    kLeaveBranch,
    kAlias  ///< another shape for the same elements; removed by fuse_elementwise()
  };
  Kind kind = Kind::kOperation;
  std::size_t site = 0;
  std::vector<SlotId> inputs;   ///< kNoSlot: absent
  std::vector<SlotId> outputs;  ///< kNoSlot: not required
  std::vector<SlotId> kept;

  std::shared_ptr<const PlanOp> operation;
  std::vector<TensorSpec> sizes;        ///< of a gradient: specs of the operation's inputs
  std::vector<std::size_t> parameters;  ///< of the operation or the calls: indices of the program's
  /// Of a gradient, per parameter: whether an earlier instruction adds to the same one, and whether
  /// no later one does.
  std::vector<bool> adds_to_others;
  std::vector<bool> is_last_to_add;
  std::optional<FusedKernel> kernel;
  std::vector<CallStep> calls;
  std::size_t forward = 0;  ///< of a gradient: the instruction it belongs to
  std::size_t tape = 0;     ///< of calls and their gradient
  std::size_t seed = 0;     ///< an index of Run::seeds
  std::size_t branch = 0;   ///< the place that is entered

  // Set by lay_out().
  std::vector<SlotId> done;           ///< slots outside the arena without later readers
  std::vector<SlotId> done_in_arena;  ///< for the run that makes the program, which has no arena
  /// Of a fused kernel, per output: the input in own memory that it overwrites; kNoSlot: none.
  std::vector<SlotId> over;
};

struct Slot {
  TensorSpec spec;
  Memory memory = Memory::kArena;
  SlotId root = kNoSlot;  ///< whose memory it shares; itself, where it has its own
  bool needs_gradient = false;
  std::size_t offset = 0;  ///< in the arena, in bytes
  std::optional<std::size_t> last_use;
};

/// A graph for inputs of given sizes, as instructions.
struct Program {
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::vector<Slot> slots;
  std::vector<Instruction> forward;
  std::vector<Instruction> backward;
  std::vector<Site> sites;
  std::vector<SlotId> inputs;            ///< the graph's inputs, then its states; kNoSlot: absent
  std::vector<SlotId> outputs;           ///< the graph's, then states that were written, then tags
  std::vector<SlotId> output_gradients;  ///< as outputs; kNoSlot: needs none
  std::vector<SlotId> input_gradients;   ///< as inputs
  std::vector<at::Tensor> parameters;
  std::vector<CallInfo> calls;
  std::vector<FoldInfo> folded;
  std::size_t tapes = 0;
  std::size_t seeds = 0;
  std::size_t elementwise_ops = 0;  ///< before fusion
  std::size_t arena_bytes = 0;
  bool records_gradients = false;
  bool is_for_inference = false;
  c10::Device device = at::kCPU;

  /// Outputs that backward does not read.
  std::vector<SlotId> handed_out;
  /// Slots outside the arena, which every run fills anew.
  std::vector<SlotId> passing;

  // Assumptions. The instructions hold parameters and were made for modes; a program is used only
  // while all of this is still true.
  struct Watched {
    at::Tensor tensor;
    const void* data = nullptr;
    bool is_trained = false;
    std::uint32_t version = 0;  ///< libtorch's count of writes
  };
  std::vector<Watched> watched;
  std::vector<std::pair<const torch::nn::Module*, bool>> modes;
  /// Set by the code that lowers: each is true while its decision would be the same.
  std::vector<std::function<bool()>> conditions;
  /// Records parameters, buffers and modes of the module that is compiled.
  void watch(const torch::nn::Module& module);
  bool still_holds() const;

  /// Unused runs. Everything else is read-only once the program is complete.
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Run>> spare;
};

std::size_t bytes_of(const TensorSpec& spec);

}  // namespace treadle::plan
