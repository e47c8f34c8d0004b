#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <treadle/plan/lowerable.h>
#include <treadle/plan/program.h>
#include <treadle/plan/run.h>

#include "compile/calls.h"

namespace treadle::graph {

/// The node that is being lowered, and the way to it from the graph that is compiled.
struct PlanPosition {
  const Graph::Impl* graph = nullptr;
  std::size_t place = 0;
  std::size_t top_place = 0;
  StatePath path;                             ///< to the graph, from the one that is compiled
  std::vector<plan::Site::Step> around;       ///< what the graph stands in, innermost first
  std::vector<plan::Site::Step> inside = {};  ///< of the node: its rounds

  /// The same within "round 2".
  PlanPosition within(std::string what) const;
};

/// Lowers a graph to a program by running it once: every instruction is carried out as it is added,
/// so that the sizes that an opaque call returns are known to the next. One thread; used once.
class PlanLowering final : public PlanBuilder {
 public:
  /// `context`: what calls find in `run.context`.
  PlanLowering(plan::Program& program, plan::Run& run, const GraphCallContext& context);

  /// All places of a graph. Returns their values.
  std::vector<PlanValue> lower_graph(const Graph::Impl& graph, const StatePath& path,
                                     std::size_t top_place,
                                     const std::vector<plan::Site::Step>& around,
                                     std::span<const PlanValue> inputs,
                                     std::span<const PlanValue> states);

  /// One of a node's callees: what it is made of, else a call.
  PlanValue lower_callee(const PlanPosition& position, std::size_t callee,
                         std::span<const PlanValue> inputs);

  /// The first output of a node's graph and those that `further` names. Nothing where the node is
  /// no graph, or one that is called.
  std::optional<std::vector<PlanValue>> lower_outputs_of_graph(
      const PlanPosition& position, std::span<const PlanValue> inputs,
      std::span<const std::string> further);

  /// Throws if a layer has left a tensor with a gradient in its memory without being stateful.
  void expect_no_state(const PlanPosition& position, std::size_t callee) const;

  /// Whether tags and traces are asked for: what is within other graphs is then called.
  bool keeps_what_is_seen() const { return state_.keeps_tags; }

  /// See run/gradient_order.h. The value itself where it needs no gradient.
  PlanValue accumulation_point(PlanValue value);

  /// An input of the program; undefined: absent.
  PlanValue take(const at::Tensor& tensor);
  void make_output(PlanValue value);

  const TensorSpec& spec(PlanValue value) const override;
  PlanValue apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) override;
  PlanValue elementwise(ElementwiseOp op, PlanValue a, double number) override;
  PlanValue elementwise(ElementwiseOp op, PlanValue a, PlanValue b) override;
  PlanValue reshape(PlanValue value, std::vector<std::int64_t> sizes) override;
  PlanValue detached(PlanValue value) override;
  bool truncates_bptt() const override { return truncates_bptt_; }

  static PlanValue absent() { return static_cast<PlanValue>(kAbsent); }
  static bool is_absent(PlanValue value) { return static_cast<std::uint32_t>(value) == kAbsent; }

 private:
  static constexpr std::uint32_t kAbsent = static_cast<std::uint32_t>(-1);
  static plan::SlotId slot_of(PlanValue value) {
    return is_absent(value) ? plan::kNoSlot : static_cast<plan::SlotId>(value);
  }

  plan::SlotId root_of(PlanValue value) const { return program_.slots[slot_of(value)].root; }
  /// All its outputs.
  std::vector<PlanValue> lower_place(const PlanPosition& position,
                                     std::span<const PlanValue> inputs);
  /// The values of all places of the graph that a callee is. Nothing, and the reason, where it has
  /// to be called.
  std::optional<std::vector<PlanValue>> lower_within(const PlanPosition& position,
                                                     std::size_t callee,
                                                     std::span<const PlanValue> inputs,
                                                     std::string& why);
  /// An adapted module as one operation. Null, and the reason, where it has to be called.
  std::shared_ptr<const PlanOp> recorded(const Callee& callee, std::span<const PlanValue> inputs,
                                         std::string& why);
  std::vector<PlanValue> call(std::shared_ptr<const plan::PlanCall> call,
                              std::span<const PlanValue> inputs, const std::string& why,
                              bool is_dynamic);
  /// Branches that run at once; their values.
  std::vector<PlanValue> call_group(const PlanPosition& first, const BranchGroup& group,
                                    std::size_t seed, std::span<const PlanValue> sources);
  plan::Instruction& begin_stretch();
  void add_call(plan::Instruction& stretch, std::shared_ptr<const plan::PlanCall> call,
                std::span<const PlanValue> inputs);
  void note_call(const std::string& node, const std::string& why, bool is_dynamic);
  /// True if any of them is trained.
  bool take_parameters(const plan::PlanCall& call, plan::Instruction& stretch);
  PlanValue alias(PlanValue value, std::vector<std::int64_t> sizes);
  PlanValue element(plan::ElementwiseRule rule, plan::SlotId a, plan::SlotId b, double number);
  bool joins_calls(const plan::PlanCall& call, std::span<const PlanValue> inputs) const;
  plan::SlotId add_slot(TensorSpec spec, plan::Memory memory);
  std::size_t parameter(const at::Tensor& tensor);
  bool needs_gradient(std::span<const PlanValue> inputs,
                      const std::vector<std::size_t>& parameters) const;
  void add_site(const PlanPosition& position, std::span<const PlanValue> inputs);
  void add(plan::Instruction instruction);
  void enter_branch();
  void keep_for_backward(const plan::Instruction& instruction);
  void release(plan::SlotId root);

  plan::Program& program_;
  plan::Run& run_;
  GraphState::Data& state_;
  const bool truncates_bptt_;
  std::size_t site_ = 0;
  struct Branch {
    std::size_t seed = 0;
    std::size_t place = 0;
    bool entered = false;
  };
  std::vector<Branch> branches_;                               // innermost last
  std::vector<bool> is_kept_;                                  // roots that backward needs
  std::map<plan::SlotId, std::vector<plan::SlotId>> aliases_;  // of roots
};

}  // namespace treadle::graph
