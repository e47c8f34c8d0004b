#include <utility>

#include <ATen/ops/alias.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/traced.h>

#include "forward/failure.h"
#include "forward/gradient_order.h"
#include "nodes/nodes.h"

// A loop in which each row halts by itself. All rows run every round, and rows that have halted
// contribute nothing: sizes stay as they are, at the price of computing rows that are done. A plan
// calls it, since the number of rounds depends on values.

namespace treadle::graph {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The output as it is; backward adds what pondering costs: the gradient of cost · Σ pondered.
class PonderCost : public torch::autograd::Function<PonderCost> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& output,
                            const at::Tensor& pondered, double cost) {
    context->saved_data["cost"] = cost;
    context->set_materialize_grads(false);
    context->save_for_backward({pondered.detach()});
    return output.detach();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (!gradients.front().defined())  // the loss asks nothing of the loop: it costs nothing
      return {at::Tensor(), at::Tensor(), at::Tensor()};
    const at::Tensor pondered = context->get_saved_variables().front();
    return {gradients.front(), at::full_like(pondered, context->saved_data["cost"].toDouble()),
            at::Tensor()};
  }
};

/// Adaptive computation time. Source: A. Graves, "Adaptive Computation Time for Recurrent Neural
/// Networks" (2016), equations 5 to 13, with the paper's symbols in the comments.
class AdaptiveLoopNode final : public Node {
 public:
  AdaptiveLoopNode(std::vector<Callee> callees, std::int64_t most, const Pondering& pondering)
      : Node(std::move(callees)),
        most_(most),
        pondering_(pondering),
        traced_(main().ability<Traced>()) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    if (inputs[0].dim() == 0)
      throw DataError("rows halt by themselves, but there are none: the stream is one number");
    c10::SmallVector<at::Tensor, 4> given(inputs.begin(), inputs.end());
    at::Tensor& current = given[0];
    Rows rows(current);
    state.traces.clear();
    trace(current, state);
    at::Tensor output;
    for (std::int64_t round = 0; round < most_; ++round) {
      if (scope.stop.stop_requested())
        throw Interrupted("stopped within a forward of the model");
      const bool is_last = round + 1 == most_;
      if (round > 0 && scope.truncates_bptt)
        current = current.detach();
      try {
        const at::Tensor next = contiguous_with_gradient(
            main().call({given.data(), given.size()}, state.callees[0], scope));
        // What a row that has halted would go on to might be anything, infinity included.
        current = round == 0 ? next : at::where(rows.over(rows.running, next), next, current);
        const at::Tensor share = rows.halt(halting(current, state, scope), pondering_, is_last);
        const at::Tensor part = current.mul(rows.over(share, current));
        output = output.defined() ? output.add(part) : part;
      } catch (...) {
        rethrow_within("round " + std::to_string(round + 1));
      }
      trace(current, state);
      if (!is_last && !rows.running.any().item<bool>())
        break;
    }
    const at::Tensor pondered = rows.rounds.add(rows.remainder);
    if (state.keeps_traces)
      state.pondered = pondered.detach();
    if (pondering_.cost == 0 || !pondered.requires_grad())
      return output;
    return PonderCost::apply(output, pondered, pondering_.cost);
  }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    const TensorSpec round = main().result(inputs);
    if (round != inputs[0]) {
      throw DataError("the body of a loop gives what it takes, but this one takes " +
                      inputs[0].text() + " and gives " + round.text());
    }
    const TensorSpec said = callees_[1].result(inputs.first(1));
    const bool is_a_number_a_row =
        !said.sizes.empty() && said.sizes[0] == round.sizes[0] &&
        (said.sizes.size() == 1 || (said.sizes.size() == 2 && said.sizes[1] == 1));
    if (!is_a_number_a_row)
      throw DataError(
          "what decides whether to halt gives one number per row, [B] or [B, 1], but "
          "this gives " +
          said.text());
    return round;
  }

  bool repeats_its_parts() const override { return most_ > 1; }
  bool depends_on_numbers() const override { return true; }
  double calls_of(std::size_t) const override { return static_cast<double>(most_); }
  std::string why_called() const override {
    return "the number of rounds of each row depends on values";
  }

 private:
  /// Where each row is on its way.
  struct Rows {
    explicit Rows(const at::Tensor& stream)
        : running(at::ones({stream.size(0)}, stream.options().dtype(at::kBool))),
          halted(at::zeros({stream.size(0)}, stream.options())),
          remainder(at::zeros_like(halted)),
          rounds(at::zeros_like(halted)) {}

    /// p: the share that this round's state has in the output; 0 for rows that have halted before.
    at::Tensor halt(const at::Tensor& probability, const Pondering& pondering, bool is_last) {
      const at::Tensor sum = halted.add(probability);
      const at::Tensor halts =
          is_last ? running : running.logical_and(sum.ge(1 - pondering.epsilon));
      const at::Tensor rest = halted.neg().add(1);  // R = 1 - Σ_{n < N} h
      const at::Tensor zero = at::zeros_like(halted);
      const at::Tensor share = at::where(running, at::where(halts, rest, probability), zero);
      remainder = at::where(halts, rest, remainder);
      rounds = rounds.add(running.to(rounds.scalar_type()));
      running = running.logical_and(halts.logical_not());
      halted = at::where(running, sum, halted);
      return share;
    }

    /// [rows] as [rows, 1, …], to stand beside `value`.
    static at::Tensor over(const at::Tensor& of_rows, const at::Tensor& value) {
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(value.dim()), 1);
      sizes[0] = of_rows.size(0);
      return of_rows.view(sizes);
    }

    at::Tensor running;    // has not halted yet
    at::Tensor halted;     // Σ h of the rounds so far in which it did not halt
    at::Tensor remainder;  // R
    at::Tensor rounds;     // N
  };

  at::Tensor halting(const at::Tensor& value, NodeState& state, const ForwardScope& scope) const {
    const at::Tensor said =
        contiguous_with_gradient(callees_[1].call({&value, 1}, state.callees[1], scope));
    if (said.numel() != value.size(0)) {
      throw DataError("what decides whether to halt gave " + std::to_string(said.numel()) +
                      " numbers for " + std::to_string(value.size(0)) + " rows");
    }
    return at::sigmoid(said).reshape({-1}).to(value.scalar_type());
  }

  void trace(const at::Tensor& value, NodeState& state) const {
    if (traced_ != nullptr && state.keeps_traces)
      state.traces.push_back(traced_->trace(value));
  }

  std::int64_t most_;
  Pondering pondering_;
  Traced* traced_;
};

}  // namespace

std::unique_ptr<Node> make_adaptive_loop_node(std::vector<Callee> callees, std::int64_t most,
                                              const Pondering& pondering) {
  return std::make_unique<AdaptiveLoopNode>(std::move(callees), most, pondering);
}

}  // namespace treadle::graph
