#include <treadle/graph/ready_parts.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <ATen/ops/argmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/abilities/takes_absent.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/linear.h>
#include <treadle/core/model/recomputed.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>

#include "flow/selector.h"
#include "forward/stands_for_body.h"
#include "run/graph_data.h"
#include "run/graph_result.h"

// Parts without a plugin: merges, routers, conditions. forward() and lower() of each are one
// definition in two forms and must agree bit by bit, so sums and products go from the first input
// to the last in both.

namespace treadle::graph {
namespace {

using Rule = std::function<at::Tensor(const Inputs&)>;

/// The same for a plan.
using PlanRule = std::function<std::optional<PlanValue>(PlanBuilder& builder,
                                                        std::span<const PlanValue> inputs)>;

/// A layer without weights.
class RuleLayer final : public Layer, public Lowerable, public TakesIndices {
 public:
  RuleLayer(const std::string& name, Rule rule, PlanRule plan, bool takes_indices)
      : Layer(name),
        rule_(std::move(rule)),
        plan_(std::move(plan)),
        takes_indices_(takes_indices) {}
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return rule_(inputs); }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return plan_ ? plan_(builder, inputs) : std::nullopt;
  }
  bool takes_indices(std::size_t) const override { return takes_indices_; }

 private:
  Rule rule_;
  PlanRule plan_;
  bool takes_indices_;
};

/// All in turn, where they have the same sizes.
std::optional<PlanValue> plan_all(ElementwiseOp step, PlanBuilder& builder,
                                  std::span<const PlanValue> inputs) {
  for (const PlanValue input : inputs) {
    if (builder.spec(input) != builder.spec(inputs[0]))
      return std::nullopt;
  }
  PlanValue result = inputs[0];
  for (const PlanValue input : inputs.subspan(1))
    result = builder.elementwise(step, result, input);
  return result;
}

std::optional<PlanValue> plan_sum(PlanBuilder& builder, std::span<const PlanValue> inputs) {
  return plan_all(ElementwiseOp::kAdd, builder, inputs);
}

class StateAdd final : public Layer, public TakesAbsent, public Lowerable {
 public:
  StateAdd() : Layer("state_add") {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    at::Tensor sum;
    for (const at::Tensor& input : inputs) {
      if (input.defined())
        sum = sum.defined() ? sum.add(input) : input;
    }
    if (!sum.defined())
      throw DataError("none of its inputs is there");
    return sum;
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return plan_sum(builder, inputs);
  }
};

/// rule(Σ inputs · Wᵀ + b)
class Projection : public Layer, public Lowerable {
 public:
  /// `function`: what `rule` is in a plan; null where it is no operation.
  Projection(const std::string& name, std::int64_t in, std::int64_t out, c10::ScalarType dtype,
             std::function<at::Tensor(const at::Tensor&)> rule,
             std::shared_ptr<const PlanOp> function)
      : Layer(name), linear_(in, out), rule_(std::move(rule)), function_(std::move(function)) {
    linear_->to(dtype);
    weight_ = register_parameter("weight", linear_->weight);
    bias_ = register_parameter("bias", linear_->bias);
  }

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    at::Tensor sum = inputs[0];
    for (std::size_t i = 1; i < inputs.size(); ++i)
      sum = sum.add(inputs[i]);
    return rule_(linear_in_precision(sum, weight_, bias_));
  }

  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    if (function_ == nullptr || builder.spec(inputs[0]).sizes.size() != 2)
      return std::nullopt;
    const auto sum = plan_sum(builder, inputs);
    if (!sum)
      return std::nullopt;
    return builder.apply(function_, builder.apply(plan_linear(weight_, bias_), *sum));
  }

 private:
  torch::nn::Linear linear_;  // draws the weights
  at::Tensor weight_;
  at::Tensor bias_;
  std::function<at::Tensor(const at::Tensor&)> rule_;
  std::shared_ptr<const PlanOp> function_;
};

/// The same for every row.
class Source final : public Layer, public TakesIndices, public NamesParameterRoles {
 public:
  static std::shared_ptr<Source> constant(const at::Tensor& row, c10::ScalarType dtype) {
    auto source = std::make_shared<Source>("constant");
    source->row_ = source->register_buffer("value", row.to(dtype, false, /*copy=*/true));
    return source;
  }
  static std::shared_ptr<Source> parameter(at::IntArrayRef shape, double mean, double std,
                                           c10::ScalarType dtype) {
    auto source = std::make_shared<Source>("parameter");
    source->row_ = source->register_parameter("weight", at::empty(shape, dtype));
    const at::NoGradGuard no_gradients;
    source->row_.normal_(mean, std);
    return source;
  }
  explicit Source(const std::string& name) : Layer(name) {}

  Roles parameter_roles() const override {
    return row_.requires_grad() ? all(ParameterRole::kTable, {row_}) : Roles();
  }

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    std::vector<std::int64_t> sizes = row_.sizes().vec();
    sizes.insert(sizes.begin(), inputs[0].size(0));
    return row_.unsqueeze(0).expand(sizes).contiguous();
  }

 private:
  at::Tensor row_;
};

class FixedSelector final : public Layer, public Selector, public TakesIndices {
 public:
  explicit FixedSelector(std::int64_t branch) : Layer("fixed_selector"), branch_(branch) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::full({1}, branch_, inputs[0].options().dtype(at::kLong));
  }
  std::int64_t first() const override { return branch_; }
  std::int64_t last() const override { return branch_; }
  bool chooses_by_row() const override { return false; }

 private:
  std::int64_t branch_;
};

/// The largest of each row's numbers, or of their means over all rows.
class ArgmaxSelector final : public Projection, public Selector {
 public:
  ArgmaxSelector(std::int64_t in, std::int64_t branches, c10::ScalarType dtype, bool by_row)
      : Projection("argmax_selector", in, branches, dtype,
                   by_row ? largest_of_row : largest_of_mean, nullptr),
        branches_(branches),
        by_row_(by_row) {}
  std::int64_t first() const override { return 0; }
  std::int64_t last() const override { return branches_ - 1; }
  bool chooses_by_row() const override { return by_row_; }

 private:
  static at::Tensor largest_of_row(const at::Tensor& x) { return at::argmax(x, -1); }
  static at::Tensor largest_of_mean(const at::Tensor& x) {
    return at::argmax(x.reshape({-1, x.size(-1)}).mean(0, /*keepdim=*/true), -1);
  }

  std::int64_t branches_;
  bool by_row_;
};

class Recomputing final : public Layer, public TakesIndices, public StandsForBody {
 public:
  Recomputing(std::shared_ptr<Graph> body, RecomputedNames names)
      : Layer("recompute"), body_(register_module("body", std::move(body))), names_(names) {
    if (body_->impl().keeps_state) {
      throw DataError(
          "what is computed twice may have no state: it would be a step ahead the second time");
    }
    if (body_->impl().reports)
      throw DataError("what is computed twice may neither log values nor add to the loss");
  }

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const auto segment =
        [body = body_,
         scope = ForwardScope{context.stop(), context.truncates_bptt(), context.calls_layers()}](
            const std::vector<at::Tensor>& given) {
          GraphState state(*body);
          std::vector<at::Tensor> results = body->run_within(given, state, scope);
          if (state.keeps_state()) {
            throw DataError(
                "a layer within carries something from forward to forward, and what is "
                "computed twice may not");
          }
          return results;
        };
    return recomputed(*body_, segment, {inputs.begin(), inputs.end()}).front();
  }

  const Graph* body() const override {
    return names_ == RecomputedNames::kOfFlow ? body_.get() : nullptr;
  }

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override {
    return result_of(*body_, inputs);
  }

  std::shared_ptr<Graph> body_;
  RecomputedNames names_;
};

/// `moves_only`: it moves elements without computing with them, so they may be integers.
Part rule_part(const std::string& type, Rule rule, PlanRule plan, nlohmann::json parameters,
               bool moves_only = false) {
  return Part(
      type,
      [type, rule = std::move(rule), plan = std::move(plan), moves_only](const LayerSpec&) {
        return std::make_shared<RuleLayer>(type, rule, plan, moves_only);
      },
      std::move(parameters));
}

Part projection_part(const std::string& type, std::int64_t in, std::int64_t out,
                     std::function<at::Tensor(const at::Tensor&)> rule,
                     std::shared_ptr<const PlanOp> function, nlohmann::json parameters) {
  return Part(
      type,
      [=](const LayerSpec& spec) {
        return std::make_shared<Projection>(type, in, out, spec.dtype, rule, function);
      },
      std::move(parameters));
}

/// "[B, 4]"
std::string rows_text(const at::Tensor& tensor) {
  TensorSpec spec = TensorSpec::of(tensor);
  if (!spec.sizes.empty())
    spec.sizes[0] = TensorSpec::kVaries;
  return spec.text();
}

void expect_one_size(const Inputs& inputs, const char* verb) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].sizes() != inputs[0].sizes()) {
      throw DataError(std::string(verb) + " tensors of one size, but input 0 is " +
                      rows_text(inputs[0]) + " and input " + std::to_string(i) + " is " +
                      rows_text(inputs[i]) + "; \"broadcast\": true repeats dimensions of 1");
    }
  }
}

at::Tensor added(const Inputs& inputs, bool broadcasts) {
  if (!broadcasts)
    expect_one_size(inputs, "adds");
  at::Tensor sum = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i)
    sum = sum.add(inputs[i]);
  return sum;
}

at::Tensor multiplied(const Inputs& inputs, bool broadcasts) {
  if (!broadcasts)
    expect_one_size(inputs, "multiplies");
  at::Tensor product = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i)
    product = product.mul(inputs[i]);
  return product;
}

/// Filled up with zeros to the widest of them.
std::vector<at::Tensor> padded_to_widest(const Inputs& values) {
  std::int64_t widest = 0;
  for (const at::Tensor& value : values)
    widest = std::max(widest, value.dim() == 0 ? 0 : value.size(-1));
  std::vector<at::Tensor> padded;
  for (const at::Tensor& value : values) {
    const bool is_narrower = value.dim() > 0 && value.size(-1) < widest;
    padded.push_back(is_narrower ? at::constant_pad_nd(value, {0, widest - value.size(-1)})
                                 : value);
  }
  return padded;
}

/// Σ_i w[…, i] · x_i in one product: [L, rest, n] · [L, n, 1], where L are the dimensions that the
/// weights have.
at::Tensor contract(const Inputs& inputs, bool pads) {
  const at::Tensor& weights = inputs[0];
  const std::vector<at::Tensor> padded =
      pads ? padded_to_widest(inputs.subspan(1)) : std::vector<at::Tensor>();
  const Inputs values = pads ? Inputs(padded) : inputs.subspan(1);
  const auto experts = static_cast<std::int64_t>(values.size());
  if (weights.dim() == 0 || weights.size(-1) != experts) {
    throw DataError("the router gives " +
                    std::to_string(weights.dim() == 0 ? 1 : weights.size(-1)) + " weights for " +
                    std::to_string(experts) + " experts");
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (values[i].sizes() != values[0].sizes()) {
      throw DataError("the experts of a mixture give one shape, but expert 0 gives " +
                      rows_text(values[0]) + " and expert " + std::to_string(i) + " gives " +
                      rows_text(values[i]) +
                      (pads ? "" : "; \"pad\": true fills narrower ones up with zeros"));
    }
  }
  const at::Tensor stacked = at::stack(at::TensorList(values.data(), values.size()), -1);
  const auto leading = static_cast<std::size_t>(weights.dim() - 1);
  if (values[0].sizes().slice(0, std::min(leading, values[0].sizes().size())) !=
      weights.sizes().slice(0, leading)) {
    throw DataError("the router gives weights " + TensorSpec::of(weights).text() +
                    ", which do not fit the experts' " + TensorSpec::of(values[0]).text());
  }
  const std::int64_t rows = weights.numel() / experts;
  return at::bmm(stacked.reshape({rows, -1, experts}), weights.reshape({rows, experts, 1}))
      .view(values[0].sizes());
}

/// Which input comes first, second, … `inputs`: how many there are; 0: not known yet.
std::vector<std::size_t> order_in_grid(const GridPosition& grid,
                                       const std::vector<GridPosition>& positions,
                                       std::size_t inputs) {
  if (inputs != 0 && inputs != positions.size()) {
    throw DataError("has positions for " + std::to_string(positions.size()) + " branches, got " +
                    std::to_string(inputs));
  }
  std::map<GridPosition, std::size_t> input_at;  // ordered by row, column, layer
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::string position = nlohmann::json(positions[i]).dump();
    for (std::size_t d = 0; d < grid.size(); ++d) {
      if (positions[i][d] < 0 || positions[i][d] >= grid[d]) {
        throw DataError("has branch " + std::to_string(i) + " at " + position +
                        ", outside of the grid " + nlohmann::json(grid).dump());
      }
    }
    if (const auto [other, is_new] = input_at.emplace(positions[i], i); !is_new) {
      throw DataError("has branches " + std::to_string(other->second) + " and " +
                      std::to_string(i) + " at " + position);
    }
  }
  std::vector<std::size_t> order;
  for (const auto& [position, input] : input_at)
    order.push_back(input);
  return order;
}

template <typename Values>
auto in_order(const std::vector<std::size_t>& order, const Values& values) {
  std::vector<typename Values::value_type> ordered;
  for (const std::size_t index : order)
    ordered.push_back(values[index]);
  return ordered;
}

/// A number, or lists of lists of them.
nlohmann::json nested_list(const at::Tensor& values) {
  if (values.dim() == 0)
    return values.item<double>();
  nlohmann::json list = nlohmann::json::array();
  for (std::int64_t i = 0; i < values.size(0); ++i)
    list.push_back(nested_list(values[i]));
  return list;
}

const nlohmann::json kNothing = nlohmann::json::object();

nlohmann::json said_of(bool broadcast) {
  return broadcast ? nlohmann::json{{"broadcast", true}} : kNothing;
}

}  // namespace

Part add(bool broadcast) {
  return rule_part(
      "add", [broadcast](const Inputs& inputs) { return added(inputs, broadcast); }, plan_sum,
      said_of(broadcast));
}

Part mean(bool broadcast) {
  return rule_part(
      "mean",
      [broadcast](const Inputs& inputs) {
        return added(inputs, broadcast).div(static_cast<double>(inputs.size()));
      },
      [](PlanBuilder& builder, std::span<const PlanValue> inputs) -> std::optional<PlanValue> {
        const auto sum = plan_sum(builder, inputs);
        if (!sum)
          return std::nullopt;
        return builder.elementwise(ElementwiseOp::kDivide, *sum,
                                   static_cast<double>(inputs.size()));
      },
      said_of(broadcast));
}

Part multiply(bool broadcast) {
  return rule_part(
      "multiply", [broadcast](const Inputs& inputs) { return multiplied(inputs, broadcast); },
      [](PlanBuilder& builder, std::span<const PlanValue> inputs) {
        return plan_all(ElementwiseOp::kMultiply, builder, inputs);
      },
      said_of(broadcast));
}

Part cat(std::int64_t dim) {
  return rule_part(
      "cat",
      [dim](const Inputs& inputs) {
        return at::cat(at::TensorList(inputs.data(), inputs.size()), dim);
      },
      [dim](PlanBuilder& builder, std::span<const PlanValue> inputs) {
        return std::optional(builder.apply(plan_cat(dim), inputs));
      },
      {{"dim", dim}}, /*moves_only=*/true);
}

Part grid_cat(const GridPosition& grid, const std::vector<GridPosition>& positions) {
  nlohmann::json parameters{{"grid", grid}, {"positions", positions}};
  return Part(
      "grid_cat",
      [grid, positions](const LayerSpec& spec) {
        const auto order = order_in_grid(grid, positions, spec.inputs.size());
        return std::make_shared<RuleLayer>(
            "grid_cat",
            [order](const Inputs& inputs) { return at::cat(in_order(order, inputs), -1); },
            [order](PlanBuilder& builder, std::span<const PlanValue> inputs) {
              return std::optional(builder.apply(plan_cat(-1), in_order(order, inputs)));
            },
            /*moves_only=*/true);
      },
      std::move(parameters));
}

void expect_grid_positions(const GridPosition& grid, const std::vector<GridPosition>& positions) {
  order_in_grid(grid, positions, positions.size());
}

Part state_add() {
  return Part(
      "state_add", [](const LayerSpec&) { return std::make_shared<StateAdd>(); }, kNothing);
}

Part weighted_sum(bool pad) {
  return rule_part(
      "mixture_of_experts", [pad](const Inputs& inputs) { return contract(inputs, pad); }, nullptr,
      kNothing);
}

Part identity() {
  return rule_part(
      "identity", [](const Inputs& inputs) { return inputs[0]; },
      [](PlanBuilder&, std::span<const PlanValue> inputs) { return std::optional(inputs[0]); },
      kNothing, /*moves_only=*/true);
}

Part recompute(const Part& body, RecomputedNames names) {
  return Part("recompute", [body, names](const LayerSpec& spec) {
    const bool is_flow = names == RecomputedNames::kOfFlow && body.flow() != nullptr;
    const FlowBuilder flow = is_flow ? *body.flow() : FlowBuilder::from(body);
    // Without inputs: of a flow that is built without sizes, and so is this one.
    return std::make_shared<Recomputing>(spec.inputs.empty() ? flow.build() : flow.build(spec),
                                         names);
  });
}

Part reshape(std::vector<std::int64_t> sizes) {
  nlohmann::json parameters{{"shape", sizes}};
  return rule_part(
      "reshape", [sizes](const Inputs& inputs) { return inputs[0].reshape(sizes); },
      [sizes](PlanBuilder& builder, std::span<const PlanValue> inputs) {
        return std::optional(builder.reshape(inputs[0], sizes));
      },
      std::move(parameters), /*moves_only=*/true);
}

Part constant(const at::Tensor& row) {
  return Part("constant",
              [row](const LayerSpec& spec) { return Source::constant(row, spec.dtype); },
              {{"value", nested_list(row.detach().to(at::kCPU, at::kDouble))}});
}

Part parameter(std::vector<std::int64_t> shape, double mean, double std) {
  nlohmann::json parameters{{"shape", shape}, {"mean", mean}, {"std", std}};
  return Part(
      "parameter",
      [shape = std::move(shape), mean, std](const LayerSpec& spec) {
        return Source::parameter(shape, mean, std, spec.dtype);
      },
      std::move(parameters));
}

Part softmax_router(std::int64_t in, std::int64_t experts) {
  return projection_part("softmax_router", in, experts,
                         [](const at::Tensor& x) { return at::softmax(x, -1); }, plan_softmax(-1),
                         {{"num_experts", experts}});
}

Part sigmoid_router(std::int64_t in, std::int64_t experts) {
  return projection_part("sigmoid_router", in, experts,
                         [](const at::Tensor& x) { return at::sigmoid(x); }, plan_sigmoid(),
                         {{"num_experts", experts}});
}

Part fixed_selector(std::int64_t branch) {
  return Part("fixed_selector",
              [branch](const LayerSpec&) { return std::make_shared<FixedSelector>(branch); },
              {{"branch", branch}});
}

Part argmax_selector(std::int64_t in, std::int64_t branches, bool by_row) {
  return Part("argmax_selector",
              [=](const LayerSpec& spec) {
                return std::make_shared<ArgmaxSelector>(in, branches, spec.dtype, by_row);
              },
              {{"num_branches", branches}, {"by", by_row ? "row" : "batch"}});
}

Part threshold_halt(double threshold) {
  return rule_part("threshold_halt",
                   [threshold](const Inputs& inputs) { return inputs[0].max().sub(threshold); },
                   nullptr, {{"threshold", threshold}});
}

Part learned_halt(std::int64_t in) {
  return projection_part(
      "learned_halt", in, 1, [](const at::Tensor& x) { return x; }, nullptr, kNothing);
}

}  // namespace treadle::graph
