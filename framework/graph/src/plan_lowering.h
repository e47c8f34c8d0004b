#pragma once

#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "plan_program.h"

namespace treadle::graph {

/// Where a node stands that is being made a part of a plan.
struct PlanPosition {
  const Graph::Impl* graph = nullptr;
  std::size_t place = 0;
  std::size_t top_place = 0;
  StatePath path;                           ///< to the graph, from the one that is compiled
  std::vector<PlanSite::Step> around;       ///< what the graph stands in, innermost first
  std::vector<PlanSite::Step> inside = {};  ///< of the node: its rounds

  /// The same within "round 2".
  PlanPosition within(std::string what) const;
};

/// Makes a plan of a graph by running it once: every instruction is carried out as it is added, so
/// that what libtorch alone can tell, the sizes that a called layer gives, is known for the next.
class PlanLowering final : public PlanBuilder {
 public:
  PlanLowering(PlanProgram& program, PlanRun& run, GraphState::Data& state, std::stop_token stop);

  /// All places of a graph. Returns their values.
  std::vector<PlanValue> lower_graph(const Graph::Impl& graph, const StatePath& path,
                                     std::size_t top_place,
                                     const std::vector<PlanSite::Step>& around,
                                     std::span<const PlanValue> inputs,
                                     std::span<const PlanValue> states);

  /// One of a node's callees: what it is made of, else a call.
  PlanValue lower_callee(const PlanPosition& position, std::size_t callee,
                         std::span<const PlanValue> inputs);

  /// Throws when a layer has left something in its memory that leads back to where it came from.
  void expect_no_memory(const PlanPosition& position, std::size_t callee) const;

  /// Whether tags and traces are asked for: what is within other graphs is then called.
  bool keeps_what_is_seen() const { return state_.keeps_tags; }

  /// See handed_on.h.
  PlanValue meeting_point(PlanValue value);

  /// A value from outside; undefined: absent.
  PlanValue take(const at::Tensor& tensor);
  void make_output(PlanValue value);

  const TensorSpec& spec(PlanValue value) const override;
  PlanValue apply(std::shared_ptr<const PlanOp> op, std::span<const PlanValue> inputs) override;
  PlanValue step(ElementStep step, PlanValue a, double number) override;
  PlanValue step(ElementStep step, PlanValue a, PlanValue b) override;
  PlanValue reshape(PlanValue value, std::vector<std::int64_t> sizes) override;

  static PlanValue absent() { return static_cast<PlanValue>(kAbsent); }
  static bool is_absent(PlanValue value) { return static_cast<std::uint32_t>(value) == kAbsent; }

 private:
  static constexpr std::uint32_t kAbsent = static_cast<std::uint32_t>(-1);
  static SlotId slot_of(PlanValue value) {
    return is_absent(value) ? kNoSlot : static_cast<SlotId>(value);
  }

  SlotId root_of(PlanValue value) const { return program_.slots[slot_of(value)].root; }
  PlanValue lower_place(const PlanPosition& position, std::span<const PlanValue> inputs);
  PlanValue call(PlannedCall call, std::span<const PlanValue> inputs, const std::string& why,
                 bool is_dynamic);
  /// Branches that run at once; their values.
  std::vector<PlanValue> call_group(const PlanPosition& first, const BranchGroup& group,
                                    std::size_t seed, std::span<const PlanValue> sources);
  PlanInstruction& begin_stretch();
  void add_call(PlanInstruction& stretch, PlannedCall call, std::span<const PlanValue> inputs,
                std::size_t results, bool is_trained);
  void note_call(const std::string& node, const std::string& why, bool is_dynamic);
  /// True if any of them is trained.
  bool take_parameters(const Callee& callee, PlanInstruction& stretch);
  PlanValue alias(PlanValue value, std::vector<std::int64_t> sizes);
  PlanValue element(ElementRule rule, SlotId a, SlotId b, double number);
  bool joins_calls(std::span<const Callee> callees, std::span<const PlanValue> inputs) const;
  SlotId add_slot(TensorSpec spec, PlanMemory memory);
  std::size_t parameter(const at::Tensor& tensor);
  bool needs_gradient(std::span<const PlanValue> inputs,
                      const std::vector<std::size_t>& parameters) const;
  void add_site(const PlanPosition& position, std::span<const PlanValue> inputs);
  void add(PlanInstruction instruction);
  void enter_branch();
  void keep_for_backward(const PlanInstruction& instruction);
  void release(SlotId root);

  PlanProgram& program_;
  PlanRun& run_;
  GraphState::Data& state_;
  const std::stop_token stop_;
  std::size_t site_ = 0;
  struct Branch {
    std::size_t seed = 0;
    std::size_t place = 0;
    bool entered = false;
  };
  std::vector<Branch> branches_;                   // innermost last
  std::vector<bool> is_kept_;                      // roots that backward needs
  std::map<SlotId, std::vector<SlotId>> aliases_;  // of roots
};

}  // namespace treadle::graph
