#include "nodes/nodes.h"

#include <algorithm>
#include <set>
#include <utility>

#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/traced.h>

#include "compile/lowering.h"
#include "forward/failure.h"
#include "forward/gradient_order.h"

// Control flow: calls, loops, maps and switches over callees. run() is the definition; lower()
// gives the same bits as operations, or nothing, and then a plan calls run().
//
// Loops whose number of rounds depends on values, and switches, wait for the device: control needs
// the number itself. Values that enter every round of a loop pass an accumulation point per round
// (rule 2 of gradient_order.h).
//
// The contract between run() and lower():
// - lower() adds the operations whose gradients meet in the order of run(). Where rounds or
//   branches would be separate records of autograd, or the number of rounds is known only at run
//   time, it returns nothing, and the plan calls run() as one piece.
// - It also returns nothing for inputs that run() refuses, so that errors are the same.
// - A node that is always called needs no accumulation points within: all uses of a value are in
//   one record, and autograd adds them in the same order in all kinds of execution. A map piece by
//   piece and a switch are of this kind.
//
// Nodes have no state of their own. States of layers and of nested graphs, and traces, are in
// NodeState, which one forward at a time uses.

namespace treadle::graph {
namespace {

void stop_if_asked(const ForwardScope& scope) {
  if (scope.stop.stop_requested())
    throw Interrupted("stopped within a forward of the model");
}

/// A number that control depends on: waits for the device.
double number_of(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).item<double>();
}

/// One callee, called once. The only kind of node with further outputs.
class CallNode final : public Node {
 public:
  CallNode(std::vector<Callee> callees, std::vector<std::string> further)
      : Node(std::move(callees)), further_(std::move(further)) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    at::Tensor value = main().call(inputs, state.callees[0], scope, further_);
    if (further_.empty())
      return value;
    // Two outputs may be one value: then its users are those of two places.
    for (at::Tensor& output : state.callees[0].outputs)
      output = accumulation_point(contiguous_with_gradient(std::move(output)));
    return accumulation_point(contiguous_with_gradient(std::move(value)));
  }
  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    return main().result(inputs);
  }
  std::vector<TensorSpec> results(std::span<const TensorSpec> inputs) const override {
    return main().results(inputs, further_);
  }
  std::size_t further_outputs() const override { return further_.size(); }
  std::optional<PlanValue> lower(PlanLowering& plan, const PlanPosition& position,
                                 std::span<const PlanValue> inputs) const override {
    return plan.lower_callee(position, 0, inputs);
  }
  std::optional<std::vector<PlanValue>> lower_outputs(
      PlanLowering& plan, const PlanPosition& position,
      std::span<const PlanValue> inputs) const override {
    return further_.empty() ? Node::lower_outputs(plan, position, inputs)
                            : plan.lower_outputs_of_graph(position, inputs, further_);
  }
  std::string why_called() const override {
    return further_.empty() ? "one of its inputs is absent" : "it has several outputs";
  }

 private:
  const std::vector<std::string> further_;
};

/// Loops with `times`, `while` and `until`. Callees: the body, then the condition.
class LoopNode final : public Node {
 public:
  LoopNode(std::vector<Callee> callees, LoopKind kind, std::int64_t rounds, HaltBy halt_by)
      : Node(std::move(callees)),
        kind_(kind),
        rounds_(rounds),
        halt_by_(halt_by),
        traced_(main().ability<Traced>()),
        keeps_state_(main().keeps_state()) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    c10::SmallVector<at::Tensor, 4> given(inputs.begin(), inputs.end());
    state.traces.clear();
    // The value before the first round is the first trace.
    trace(given[0], state);
    for (std::int64_t round = 0; round < rounds_; ++round) {
      stop_if_asked(scope);
      if (kind_ == LoopKind::kWhile && halts(given[0], state, scope))
        break;
      // Not before the first round: the loop's input is no time step of the loop.
      if (round > 0 && scope.truncates_bptt)
        given[0] = given[0].detach();
      try {
        for (std::size_t i = 1; i < given.size(); ++i)
          given[i] = accumulation_point(inputs[i]);
        given[0] = contiguous_with_gradient(
            main().call({given.data(), given.size()}, state.callees[0], scope));
      } catch (...) {
        rethrow_within("round " + std::to_string(round + 1));
      }
      trace(given[0], state);
      // After the last round nothing depends on the condition, so it is not evaluated.
      const bool is_last = round + 1 == rounds_;
      if (kind_ == LoopKind::kUntil && !is_last && halts(given[0], state, scope))
        break;
    }
    return given[0];
  }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    const TensorSpec round = main().result(inputs);
    if (round != inputs[0]) {
      throw DataError("the body of a loop gives what it takes, but this one takes " +
                      inputs[0].text() + " and gives " + round.text());
    }
    // A condition gets the stream alone. Its result is free; only that it takes the stream is
    // checked.
    if (callees_.size() > 1)
      callees_[1].result(inputs.first(1));
    return round;
  }

  std::optional<PlanValue> lower(PlanLowering& plan, const PlanPosition& position,
                                 std::span<const PlanValue> inputs) const override {
    const bool is_traced = traced_ != nullptr && plan.keeps_what_is_seen();
    // A record of gradients that ends with a round would miss the state that the next one reads.
    if (depends_on_numbers() || is_traced || keeps_state_)
      return std::nullopt;
    std::vector<PlanValue> given(inputs.begin(), inputs.end());
    for (std::int64_t round = 0; round < rounds_; ++round) {
      if (round > 0 && plan.truncates_bptt())
        given[0] = plan.detached(given[0]);
      for (std::size_t i = 1; i < given.size(); ++i)
        given[i] = plan.accumulation_point(inputs[i]);
      given[0] = plan.lower_callee(position.within("round " + std::to_string(round + 1)), 0, given);
      plan.expect_no_state(position, 0);
    }
    return given[0];
  }
  bool repeats_its_parts() const override { return rounds_ > 1; }
  bool depends_on_numbers() const override { return kind_ != LoopKind::kTimes; }
  double calls_of(std::size_t) const override { return static_cast<double>(rounds_); }
  std::string why_called() const override {
    if (depends_on_numbers())
      return "its number of rounds depends on values";
    return keeps_state_ ? "its body keeps state between rounds" : "its rounds are traced";
  }

 private:
  void trace(const at::Tensor& value, NodeState& state) const {
    if (traced_ != nullptr && state.keeps_traces)
      state.traces.push_back(traced_->trace(value));
  }

  bool halts(const at::Tensor& value, NodeState& state, const ForwardScope& scope) const {
    const at::Tensor said = callees_[1].call({&value, 1}, state.callees[1], scope);
    if (said.numel() == 0)
      throw DataError("the condition gave no number");
    switch (halt_by_) {
      case HaltBy::kOneElement:
        if (said.numel() != 1) {
          throw DataError("the condition gave " + TensorSpec::of(said).text() +
                          "; state in \"halt_by\" how its elements decide: first, any or all");
        }
        return number_of(said) > 0;
      case HaltBy::kFirst:
        return number_of(said.reshape({-1})[0]) > 0;
      case HaltBy::kAny:
        return number_of(said.max()) > 0;
      case HaltBy::kAll:
        return number_of(said.min()) > 0;
    }
    return true;
  }

  LoopKind kind_;
  std::int64_t rounds_;
  HaltBy halt_by_;
  Traced* traced_;
  bool keeps_state_;
};

/// The body on rows, one by one or all in one call; with slices, parts of the last dimension become
/// rows first. A map over a tag gets that value as its stream (verbs.cpp), so it is no case here.
class MapNode final : public Node {
 public:
  MapNode(std::vector<Callee> callees, std::int64_t slices, bool batched)
      : Node(std::move(callees)), slices_(slices), batched_(batched) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    c10::SmallVector<at::Tensor, 4> given(inputs.begin(), inputs.end());
    given[0] = pieces_of(given[0]);
    const at::Tensor joined =
        batched_ ? main().call({given.data(), given.size()}, state.callees[0], scope)
                 : piece_by_piece({given.data(), given.size()}, state, scope);
    return slices_ > 0 ? joined_slices(joined, inputs[0]) : joined;
  }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    std::vector<TensorSpec> given(inputs.begin(), inputs.end());
    if (inputs[0].sizes.empty())
      throw DataError("a map goes over the first dimension, but there is none");
    if (slices_ > 0) {
      expect_divisible(inputs[0].width(), inputs[0].sizes.size());
      given[0].sizes = {TensorSpec::kVaries, inputs[0].width() / slices_};
    } else if (!batched_) {
      given[0].sizes[0] = 1;
    }
    TensorSpec result = main().result(given);
    if (result.sizes.empty())
      throw DataError("the body of a map must keep the first dimension, but gives " +
                      result.text());
    if (slices_ > 0) {
      std::vector<std::int64_t> sizes = inputs[0].sizes;
      sizes.back() = result.width() * slices_;
      result.sizes = std::move(sizes);
    } else if (!batched_) {
      const bool is_known =
          result.sizes[0] != TensorSpec::kVaries && inputs[0].sizes[0] != TensorSpec::kVaries;
      result.sizes[0] = is_known ? result.sizes[0] * inputs[0].sizes[0] : TensorSpec::kVaries;
    }
    return result;
  }

  double calls_of(std::size_t) const override {
    return slices_ > 0 ? static_cast<double>(slices_) : 1;
  }

  std::optional<PlanValue> lower(PlanLowering& plan, const PlanPosition& position,
                                 std::span<const PlanValue> inputs) const override {
    // Only batched maps: the body is then called once. Piece by piece it would be lowered once per
    // row, into a plan as long as the batch.
    const std::vector<std::int64_t> sizes = plan.spec(inputs[0]).sizes;
    if (!batched_ || sizes.empty() || sizes[0] == 0)
      return std::nullopt;
    if (slices_ == 0)
      return plan.lower_callee(position, 0, inputs);
    if (sizes.size() < 2 || sizes.back() % slices_ != 0)
      return std::nullopt;
    std::vector<PlanValue> given(inputs.begin(), inputs.end());
    given[0] = plan.reshape(inputs[0], {-1, sizes.back() / slices_});
    // The same two reshapes as in run(), as aliases: no data moves.
    const PlanValue rows = plan.lower_callee(position, 0, given);
    // -1 is the width that the body gives, times the number of slices.
    std::vector<std::int64_t> joined = sizes;
    joined.back() = -1;
    return plan.reshape(rows, joined);
  }
  bool repeats_its_parts() const override { return !batched_; }
  std::string why_called() const override {
    return batched_ ? "it cannot be lowered for such inputs" : "it calls its body piece by piece";
  }

 private:
  void expect_divisible(std::int64_t width, std::size_t dimensions) const {
    if (dimensions < 2)
      throw DataError("slices are of the last of two dimensions or more, got " +
                      std::to_string(dimensions));
    if (width % slices_ != 0) {
      throw DataError("a last dimension of " + std::to_string(width) + " cannot be cut into " +
                      std::to_string(slices_) + " slices of one size");
    }
  }

  at::Tensor pieces_of(const at::Tensor& value) const {
    if (value.dim() == 0)
      throw DataError("a map goes over the first dimension, but there is none");
    if (value.size(0) == 0)
      throw DataError("a map over nothing: the first dimension of " + TensorSpec::of(value).text() +
                      " is empty");
    if (slices_ == 0)
      return value;
    expect_divisible(value.size(-1), static_cast<std::size_t>(value.dim()));
    return value.reshape({-1, value.size(-1) / slices_});
  }

  at::Tensor piece_by_piece(const Inputs& inputs, NodeState& state,
                            const ForwardScope& scope) const {
    c10::SmallVector<at::Tensor, 4> given(inputs.begin(), inputs.end());
    std::vector<at::Tensor> results;
    const std::int64_t count = inputs[0].size(0);
    results.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      stop_if_asked(scope);
      // A view of whole rows, contiguous as rule 4 requires.
      given[0] = inputs[0].narrow(0, i, 1);
      try {
        results.push_back(main().call({given.data(), given.size()}, state.callees[0], scope));
      } catch (...) {
        rethrow_within("piece " + std::to_string(i));
      }
    }
    return at::cat(results, 0);
  }

  at::Tensor joined_slices(const at::Tensor& rows, const at::Tensor& input) const {
    std::vector<std::int64_t> sizes = input.sizes().vec();
    sizes.back() = -1;
    return rows.reshape(sizes);
  }

  std::int64_t slices_;  // 0: rows
  bool batched_;
};

/// Callees: the router, then the branches.
class SwitchNode final : public Node {
 public:
  SwitchNode(std::vector<Callee> callees, SwitchBy by) : Node(std::move(callees)), by_(by) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    // The router alone gets the references, the branches the stream. The choice is taken as an
    // integer, so the router gets no gradient through it.
    const at::Tensor choice = main().call(inputs, state.callees[0], scope);
    if (choice.numel() == 0)
      throw DataError("the router chose nothing: it gave " + TensorSpec::of(choice).text());
    return by_ == SwitchBy::kBatch ? whole_batch(inputs[0], choice, state, scope)
                                   : row_by_row(inputs[0], choice, state, scope);
  }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    main().result(inputs);
    const TensorSpec first = callees_[1].result(inputs.first(1));
    // One shape for all branches: the nodes after the switch are built before any choice is known.
    for (std::size_t i = 2; i < callees_.size(); ++i) {
      const TensorSpec other = callees_[i].result(inputs.first(1));
      if (other != first) {
        throw DataError("the branches of a switch give one shape, but branch 0 gives " +
                        first.text() + " and branch " + std::to_string(i - 1) + " gives " +
                        other.text());
      }
    }
    return first;
  }

  bool depends_on_numbers() const override { return true; }
  double calls_of(std::size_t callee) const override {
    return callee == 0 ? 1 : 1 / static_cast<double>(branch_count());
  }
  std::string why_called() const override { return "the branch depends on values"; }

 private:
  std::int64_t branch_count() const { return static_cast<std::int64_t>(callees_.size()) - 1; }

  at::Tensor call_branch(std::int64_t branch, const at::Tensor& input, NodeState& state,
                         const ForwardScope& scope) const {
    const auto callee = static_cast<std::size_t>(branch) + 1;
    try {
      return callees_[callee].call({&input, 1}, state.callees[callee], scope);
    } catch (...) {
      rethrow_within("branch " + std::to_string(branch));
    }
  }

  void expect_branch(std::int64_t branch) const {
    if (branch >= 0 && branch < branch_count())
      return;
    throw DataError("the router chose branch " + std::to_string(branch) + " of " +
                    std::to_string(branch_count()));
  }

  at::Tensor whole_batch(const at::Tensor& input, const at::Tensor& choice, NodeState& state,
                         const ForwardScope& scope) const {
    const auto branch = choice.reshape({-1})[0].to(at::kLong).item<std::int64_t>();
    expect_branch(branch);
    return call_branch(branch, input, state, scope);
  }

  // Rows of one branch lie together in between: each branch is called once, and the results are put
  // back in the rows' order.
  at::Tensor row_by_row(const at::Tensor& input, const at::Tensor& choice, NodeState& state,
                        const ForwardScope& scope) const {
    const std::int64_t rows = input.size(0);
    if (choice.numel() != rows) {
      throw DataError("the router chose for " + std::to_string(choice.numel()) + " rows of " +
                      std::to_string(rows));
    }
    const at::Tensor branch_of_row = choice.detach().reshape({-1}).to(at::kLong);
    expect_branch(branch_of_row.min().item<std::int64_t>());
    expect_branch(branch_of_row.max().item<std::int64_t>());
    std::vector<at::Tensor> taken;
    std::vector<at::Tensor> results;
    for (std::int64_t branch = 0; branch < branch_count(); ++branch) {
      at::Tensor indices = branch_of_row.eq(branch).nonzero().reshape({-1});
      // A branch without rows is not called, and has no gradients.
      if (indices.numel() == 0)
        continue;
      results.push_back(call_branch(branch, input.index_select(0, indices), state, scope));
      taken.push_back(std::move(indices));
    }
    // taken is a permutation of all rows, and argsort its inverse. No index occurs twice, so the
    // sorting algorithm does not matter.
    return at::cat(results, 0).index_select(0, at::cat(taken, 0).argsort());
  }

  SwitchBy by_;
};

}  // namespace

std::vector<at::Tensor> Node::parameters() const {
  // Identity of a tensor is that of its implementation: handles to one parameter compare by it.
  std::vector<at::Tensor> all;
  std::set<const void*> seen;
  for (const Callee& callee : callees_) {
    for (const at::Tensor& parameter : callee.module()->parameters()) {
      if (seen.insert(parameter.unsafeGetTensorImpl()).second)
        all.push_back(parameter);
    }
  }
  return all;
}

std::optional<PlanValue> Node::lower(PlanLowering&, const PlanPosition&,
                                     std::span<const PlanValue>) const {
  return std::nullopt;
}

std::optional<std::vector<PlanValue>> Node::lower_outputs(PlanLowering& plan,
                                                          const PlanPosition& position,
                                                          std::span<const PlanValue> inputs) const {
  const auto value = lower(plan, position, inputs);
  return value ? std::optional(std::vector{*value}) : std::nullopt;
}

std::unique_ptr<Node> make_call_node(Callee callee, std::vector<std::string> further) {
  std::vector<Callee> callees;
  callees.push_back(std::move(callee));
  return std::make_unique<CallNode>(std::move(callees), std::move(further));
}

std::unique_ptr<Node> make_loop_node(std::vector<Callee> callees, LoopKind kind,
                                     std::int64_t rounds, HaltBy halt_by) {
  return std::make_unique<LoopNode>(std::move(callees), kind, rounds, halt_by);
}

std::unique_ptr<Node> make_map_node(std::vector<Callee> callees, std::int64_t slices,
                                    bool batched) {
  return std::make_unique<MapNode>(std::move(callees), slices, batched);
}

std::unique_ptr<Node> make_switch_node(std::vector<Callee> callees, SwitchBy switch_by) {
  return std::make_unique<SwitchNode>(std::move(callees), switch_by);
}

}  // namespace treadle::graph
