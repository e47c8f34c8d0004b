#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/model/layer.h>

namespace treadle {
class GraphBuilder;
class PluginRegistry;
}  // namespace treadle

namespace treadle::graph {

class FlowBuilder;
class Graph;

/// A function of one tensor as a module, so that it can be a part.
class Function final : public torch::nn::Module {
 public:
  explicit Function(std::function<at::Tensor(const at::Tensor&)> function)
      : torch::nn::Module("Function"), function_(std::move(function)) {}
  at::Tensor forward(const at::Tensor& x) const { return function_(x); }

 private:
  std::function<at::Tensor(const at::Tensor&)> function_;
};

/// The argument of a verb of FlowBuilder: a layer by name, an existing layer or module, a built
/// graph, a flow, or a function. A handle: copies mean the same part.
///
/// A part by name is made anew whenever the flow is built, when its inputs are known. A module that
/// is there is used itself: its weights are shared by everything it is given to.
class Part {
 public:
  using Make = std::function<std::shared_ptr<Layer>(const LayerSpec&)>;

  /// A layer created by `make`. `parameters` are its keys in a document, beside `"use": type`; null
  /// when a document cannot express it.
  Part(std::string type, Make make, nlohmann::json parameters = nullptr);

  /// A flow that `build` builds for inputs of the given sizes: a nested graph. `origin`: its
  /// component, for messages. `parameters` as above, `"use"` among them.
  using BuildFlow = std::function<std::shared_ptr<const FlowBuilder>(const LayerSpec&)>;
  Part(std::string type, BuildFlow build, std::string origin, nlohmann::json parameters);

  /// A flow becomes a graph of its own within the graph. One that is a single nameless layer is
  /// that layer.
  Part(const FlowBuilder& flow);       // NOLINT: a verb takes any of these
  Part(std::shared_ptr<Graph> graph);  // NOLINT

  /// A layer, or any module with `Tensor forward(Tensor, …)`.
  template <typename Net>
  requires std::derived_from<Net, torch::nn::Module> Part(std::shared_ptr<Net> module)  // NOLINT
      : Part(as_layer(module), module) {}

  /// torch::nn::Linear(4, 2) and its like.
  template <typename Holder>
  requires requires(const Holder& holder) {
    typename Holder::ContainedType;
    holder.ptr();
  }
  Part(const Holder& holder) : Part(holder.ptr()) {}  // NOLINT

  template <typename Call>
  requires(std::is_invocable_r_v<at::Tensor, Call, const at::Tensor&> &&
           !requires(const Call& call) { call.ptr(); }) Part(Call function)  // NOLINT
      : Part(std::make_shared<Function>(std::move(function))) {}

  /// "dense", "Linear", "flow": what nodes are called after.
  const std::string& type() const { return type_; }
  const nlohmann::json& parameters() const { return parameters_; }

  /// One of these. A layer for inputs of such sizes, a graph, a flow, a flow for such sizes.
  const Make& make() const { return make_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  const std::shared_ptr<const FlowBuilder>& flow() const { return flow_; }
  const BuildFlow& build_flow() const { return build_flow_; }
  const std::string& origin() const { return origin_; }

  /// The module that is there already, which a graph registers under the node's name; null for
  /// others.
  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }

 private:
  Part(std::shared_ptr<Layer> layer, const std::shared_ptr<torch::nn::Module>& module);

  template <typename Net>
  static std::shared_ptr<Layer> as_layer(const std::shared_ptr<Net>& module) {
    TREADLE_EXPECTS(module != nullptr, "a part needs a module");
    if constexpr (std::derived_from<Net, Layer>) {
      return module;
    } else {
      return std::make_shared<AdaptedLayer<Net>>(module);
    }
  }

  std::string type_;
  nlohmann::json parameters_;
  Make make_;
  std::shared_ptr<torch::nn::Module> module_;
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<const FlowBuilder> flow_;
  BuildFlow build_flow_;
  std::string origin_;
};

/// A layer that a plugin offers: `layer(registry, "dense", {{"out_features", 32}})`. Throws what
/// the registry throws when there is no such layer or it takes no such parameters.
Part layer(const PluginRegistry& registry, std::string_view name,
           nlohmann::json parameters = nlohmann::json::object());
/// The same of a factory that is there already. One that is a FlowVerb becomes the flow it adds.
Part layer(std::shared_ptr<const LayerFactory> factory, std::string type,
           nlohmann::json parameters);

/// The network of a graph builder: `built(registry, "residual_mlp", {{"blocks", 4}})`. A nested
/// graph; the builder is called when the sizes of its inputs are known. The registry creates the
/// layers that the builder names, and must outlive every flow that has the part. Throws the
/// registry's error for an unknown builder or wrong parameters.
Part built(const PluginRegistry& registry, std::string_view name,
           nlohmann::json parameters = nlohmann::json::object());
/// The same of a builder that is there already.
Part built(std::shared_ptr<const GraphBuilder> builder, std::string type, nlohmann::json parameters,
           const PluginRegistry& registry);

}  // namespace treadle::graph
