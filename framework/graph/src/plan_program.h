#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/plan_op.h>
#include <treadle/core/task_random.h>
#include <treadle/graph/plan.h>

#include "element_pass.h"
#include "graph_data.h"

namespace treadle::graph {

using SlotId = std::size_t;
inline constexpr SlotId kNoSlot = static_cast<SlotId>(-1);

/// Where a callee or node finds what its stream left behind: (place, callee) of each graph on the
/// way down.
using StatePath = std::vector<std::pair<std::size_t, std::size_t>>;

/// What an instruction is a part of, for what fails.
struct PlanSite {
  /// What an error learns on its way out.
  struct Step {
    std::string place;        ///< "node "dense_0"", "round 2"
    std::string text_before;  ///< of a node, what failed and how; empty for what is none
    bool is_node = true;
  };
  std::size_t top_place = 0;  ///< within the graph that was compiled
  std::string node;           ///< the name of what stands there
  std::vector<Step> way;      ///< innermost first
};

/// A node or callee that is called as it is, or branches that run at once.
struct PlannedCall {
  const Callee* callee = nullptr;      ///< or
  const Node* node = nullptr;          ///< or
  const BranchGroup* group = nullptr;  ///< which gives a value for each place, and
  const Graph::Impl* graph = nullptr;  ///< the graph that it is in
  std::size_t seed = 0;                ///< of a group: which of the run's seeds
  StatePath path;                      ///< of a group: to its graph
  /// Where an input comes from: the stretch's inputs, or an earlier call of it.
  struct Source {
    bool is_call = false;
    std::size_t index = 0;  ///< kNoSlot: absent
  };
  std::vector<Source> inputs;
  std::size_t site = 0;
};

/// Of a stretch of calls in one run, until backward: where recorded gradients begin and end.
struct CallTape {
  std::vector<at::Tensor> leaves;   // as PlanInstruction::inputs
  std::vector<at::Tensor> results;  // as PlanInstruction::outputs
};

struct PlanInstruction {
  enum class Kind : std::uint8_t {
    kOperation,
    kElements,
    kCalls,              ///< outputs: what each call gives, in order
    kOperationGradient,  ///< inputs: of the output, then what backward_reads(); outputs: of inputs
    kCallsGradient,      ///< inputs: of results; outputs: of leaves
    kDrawSeed,           ///< of a graph with branches, at its beginning
    kEnterBranch,
    kLeaveBranch,
    kAlias  ///< other sizes for the same numbers; gone when the plan is complete
  };
  Kind kind = Kind::kOperation;
  std::size_t site = 0;
  std::vector<SlotId> inputs;   ///< kNoSlot: not there
  std::vector<SlotId> outputs;  ///< kNoSlot: not wanted
  std::vector<SlotId> kept;

  std::shared_ptr<const PlanOp> operation;
  std::vector<TensorSpec> sizes;        ///< of a gradient: of the operation's inputs
  std::vector<std::size_t> parameters;  ///< of the operation or calls: indices of the plan's
  /// Of a gradient, as parameters: whether an earlier instruction added to the same one.
  std::vector<bool> adds_to_others;
  std::vector<bool> is_last_to_add;  ///< so, too
  std::optional<ElementPass> elements;
  std::vector<PlannedCall> calls;
  std::size_t forward = 0;  ///< of a gradient: the instruction it belongs to
  std::size_t tape = 0;     ///< of calls and their gradient
  std::size_t seed = 0;     ///< which of the run's seeds
  std::size_t branch = 0;   ///< the place that is entered

  // Known when all instructions are.
  std::vector<SlotId> done;           ///< slots outside the arena that nobody reads after it
  std::vector<SlotId> done_in_arena;  ///< for the run that makes the plan, which has no arena
  /// Of a pass, for each output: which input's own memory it is written over; kNoSlot: none.
  std::vector<SlotId> over;
};

struct PlanSlot {
  TensorSpec spec;
  PlanMemory memory = PlanMemory::kArena;
  SlotId root = kNoSlot;  ///< whose memory it shares; itself, where it has its own
  bool needs_gradient = false;
  std::size_t offset = 0;  ///< in the arena, in bytes
  std::optional<std::size_t> last_use;
};

/// What a run of a plan works on. Used again by the next run.
struct PlanRun {
  PlanRun() = default;
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;
  ~PlanRun() { leave_branches(); }

  /// Scopes of random streams end in the reverse order of their beginning.
  void leave_branches() {
    while (!branches.empty())
      branches.pop_back();
  }

  at::Tensor arena;
  std::vector<at::Tensor> slots;
  std::vector<std::uint8_t> absent;  // as slots that are roots: a gradient that does not exist
  std::vector<CallTape> tapes;
  std::vector<std::uint64_t> seeds;
  std::vector<std::unique_ptr<TaskRandom>> branches;  // entered, innermost last
  /// Of parameters, while a backward runs: where gradients are summed. The parameter's own where
  /// that was zeros; undefined where nothing arrived yet.
  std::vector<at::Tensor> sums;
  std::vector<std::uint8_t> arrived;  // as sums: whether something was added
  bool hands_sums_over = false;       ///< they are added to the parameters' gradients
};

/// A graph for inputs of certain sizes, as instructions. Read-only when it is complete.
struct PlanProgram {
  std::vector<PlanSlot> slots;
  std::vector<PlanInstruction> forward;
  std::vector<PlanInstruction> backward;
  std::vector<PlanSite> sites;
  std::vector<SlotId> inputs;            ///< the graph's inputs, then its states; kNoSlot: absent
  std::vector<SlotId> outputs;           ///< the graph's, then states that were written, then tags
  std::vector<SlotId> output_gradients;  ///< as outputs; kNoSlot: needs none
  std::vector<SlotId> input_gradients;   ///< as inputs
  std::vector<at::Tensor> parameters;
  std::vector<PlanCallInfo> calls;
  std::vector<PlanFoldInfo> folded;
  std::size_t tapes = 0;
  std::size_t seeds = 0;
  std::size_t element_steps = 0;  ///< before they became passes
  std::size_t arena_bytes = 0;
  bool records_gradients = false;
  bool is_for_inference = false;
  c10::Device device = at::kCPU;

  /// Outputs that backward does not need.
  std::vector<SlotId> handed_out;
  /// Slots outside the arena, which the next run fills anew.
  std::vector<SlotId> passing;

  // What the instructions took for granted: they hold parameters, and were made for a mode.
  struct Watched {
    at::Tensor tensor;
    const void* data = nullptr;
    bool is_trained = false;
    std::uint32_t version = 0;  ///< libtorch counts writes
  };
  std::vector<Watched> watched;
  std::vector<std::pair<const torch::nn::Module*, bool>> modes;
  struct Decided {
    const Graph::Impl* graph = nullptr;
    const BranchGroup* group = nullptr;
    bool at_once = false;
  };
  std::vector<Decided> decided;  ///< how branches run
  void remember(const Graph& graph);
  bool still_holds() const;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<PlanRun>> spare;
};

std::size_t bytes_of(const TensorSpec& spec);

/// Of a plan without gradients: constants of an operation become a part of the weights of the one
/// before it, where nobody else reads what that gives.
void fold_constants(PlanProgram& program);
/// Adds the instructions that make gradients.
void add_backward(PlanProgram& program);
/// Makes passes of element steps that stand beside each other.
void fuse_elements(PlanProgram& program);
/// Finds out when slots are done and where in the arena each lies.
void lay_out(PlanProgram& program);

}  // namespace treadle::graph
