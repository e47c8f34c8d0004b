#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/model/model.h>
#include <treadle/core/model/model_spec.h>
#include <treadle/core/model/tensor_spec.h>

namespace treadle {

/// The values that a layer logged and added to the loss, in the order of its calls.
struct LayerReports {
  struct Report {
    std::string name;
    at::Tensor value;  ///< 0-dim; of a loss: differentiable
    bool is_loss = false;
  };
  bool takes_logs = false;
  bool takes_losses = false;
  std::vector<Report> list = {};
};

/// Everything that belongs to one call of a layer, and therefore not to the layer. Made by the
/// graph that calls it.
class LayerContext {
 public:
  /// One that stands alone, for tests: its state is empty, and it takes logs and losses.
  explicit LayerContext(std::stop_token stop = {});
  /// For what calls layers. `state` and `reports` outlive the context.
  LayerContext(std::stop_token stop, StateDict& state, LayerReports& reports)
      : stop_(std::move(stop)), state_(state), reports_(reports) {}
  LayerContext(const LayerContext&) = delete;
  LayerContext& operator=(const LayerContext&) = delete;

  const std::stop_token& stop() const { return stop_; }

  /// The state of this layer, which then KeepsState, from call to call within one stream; saved in
  /// checkpoints, its gradients cut between steps. Empty at first.
  StateDict& state() { return state_; }

  /// Whether values are logged: only training forwards are.
  bool is_logging() const { return reports_.takes_logs; }
  /// Logs a value of this batch: the history has its mean over an epoch as "<node>.<name>". See
  /// LoggedValues::add(). The layer LogsValues.
  void log(std::string_view name, const at::Tensor& value, std::optional<Reduction> by = {});

  /// Whether losses are taken: only training forwards do.
  bool takes_losses() const { return reports_.takes_losses; }
  /// Adds a term to the loss: a sum over the rows of this call, 0-dim, differentiable, scaled by
  /// the layer; a number of the whole call times its rows counts as one. The history has its mean
  /// over rows as "<node>.<name>". The layer AddsLosses.
  void add_loss(std::string_view name, at::Tensor sum);

  const std::vector<LayerReports::Report>& reports() const { return reports_.list; }

  /// Whether gradients end at every step of time: a layer that carries a state through the steps of
  /// a sequence then detaches it before each step takes it. Values stay the same. What state()
  /// holds is detached already.
  bool truncates_bptt() const { return truncates_bptt_; }
  /// For what calls layers, and for tests.
  void set_truncated_bptt(bool one_step) { truncates_bptt_ = one_step; }

  /// As ForwardContext::calls_layers(), for layers that call graphs.
  bool calls_layers() const { return calls_layers_; }
  /// For what calls layers.
  void set_calls_layers(bool calls) { calls_layers_ = calls; }

  /// Whether this output of a layer that NamesOutputs is used: others need not be computed.
  bool is_requested(std::string_view output) const { return index_of(output).has_value(); }
  /// Sets a further output; one that is not requested is dropped.
  void set_output(std::string_view name, at::Tensor value);
  /// For what calls layers, and for tests. The names outlive the context.
  void request_outputs(std::span<const std::string> names);
  /// As requested, after the call. Throws a DataError where the layer has not set one.
  std::vector<at::Tensor> take_outputs();

 private:
  struct Own {
    StateDict state;
    LayerReports reports{true, true};
  };
  std::optional<std::size_t> index_of(std::string_view output) const;

  std::unique_ptr<Own> own_;
  std::stop_token stop_;
  StateDict& state_;
  LayerReports& reports_;
  bool truncates_bptt_ = false;
  bool calls_layers_ = false;
  std::span<const std::string> requested_;
  std::vector<at::Tensor> outputs_;  // as requested_
};

/// A node of a model graph: one tensor from one or more, and further ones where it NamesOutputs.
/// Also a torch::nn::Module: parameters, buffers, train() and eval(), names as in libtorch.
///
/// forward() may run on several threads at once and writes to no member (running statistics of a
/// batch norm in training excepted), nor to its inputs.
class Layer : public torch::nn::Module, public Provided {
 public:
  using torch::nn::Module::Module;
  ~Layer() override;

  /// `inputs`: the stream first (every branch, for a layer that merges), then the references. One
  /// is undefined where a state is absent, for layers that are TakesAbsent. In a graph all are
  /// contiguous, and so is the gradient that comes back to what forward() returns.
  virtual at::Tensor forward(const Inputs& inputs, LayerContext& context) = 0;

  /// The result of forward() for such inputs. Throws a DataError, or an error of libtorch, when it
  /// cannot take them.
  TensorSpec result(std::span<const TensorSpec> inputs);
  /// The same, followed by its further outputs of these names.
  std::vector<TensorSpec> results(std::span<const TensorSpec> inputs,
                                  std::span<const std::string> outputs);

 protected:
  /// The spec of forward() on zeros, in evaluation, with two and with three for every varying size.
  TensorSpec tried_on_zeros(std::span<const TensorSpec> inputs);

 private:
  std::vector<TensorSpec> tried_on_zeros(std::span<const TensorSpec> inputs,
                                         std::span<const std::string> outputs);
  /// Override it where zeros will not do.
  virtual TensorSpec do_result(std::span<const TensorSpec> inputs) {
    return tried_on_zeros(inputs);
  }
};

// Further abilities of a layer, or of a module adapted as one, are in abilities/. A graph detects
// them when it is built, by dynamic_cast.

/// The inputs and outputs that a layer must fit.
struct LayerSpec {
  std::vector<TensorSpec> inputs;  ///< the stream (every branch of it), then the references
  /// The outputs that the loss requires of the whole model; may be empty.
  std::vector<OutputSpec> outputs = {};
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the parameters
  /// As ModelSpec::is_step_by_step, for layers over sequences: such a layer then KeepsState.
  bool is_step_by_step = false;
  /// The module of a node that comes earlier in the flow, or in one around it, for weights that are
  /// tied; null where no node is called so. May be empty. For use during create() only.
  std::function<const torch::nn::Module*(std::string_view node)> module_of = {};
};

/// Makes layers: what `{"use": "dense", "out_features": 32}` in a flow names. create() gives the
/// same structure, names and shapes every time: once per fold, trial and replica.
class LayerFactory : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.layer/0";

  ~LayerFactory() override;

  /// Initial weights are drawn from the calling task's random stream, in spec.dtype. Throws a
  /// DataError when the layer cannot take such inputs.
  std::shared_ptr<Layer> create(const LayerSpec& spec) const;

 private:
  virtual std::shared_ptr<Layer> do_create(const LayerSpec& spec) const = 0;
};

namespace detail {

template <typename Net, std::size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...>) {
  return requires(Net & net, const at::Tensor& tensor) {
    { net.forward((static_cast<void>(I), tensor)...) } -> std::convertible_to<at::Tensor>;
  };
}

/// How many tensors Net::forward takes, up to eight; 0 when it takes no such number.
template <typename Net, std::size_t Count = 1>
constexpr std::size_t tensors_taken() {
  if constexpr (takes_tensors<Net>(std::make_index_sequence<Count>())) {
    return Count;
  } else if constexpr (Count < 8) {
    return tensors_taken<Net, Count + 1>();
  } else {
    return 0;
  }
}

[[noreturn]] void refuse_input_count(std::size_t taken, std::size_t given);

}  // namespace detail

/// Any module with `Tensor forward(Tensor, …)` as a layer. A graph registers the module itself, so
/// its parameters have no prefix of the adapter's.
template <typename Net>
class AdaptedLayer final : public Layer {
 public:
  static constexpr std::size_t kInputs = detail::tensors_taken<Net>();
  static_assert(kInputs > 0, "a layer's forward() takes one to eight tensors and returns one");

  explicit AdaptedLayer(std::shared_ptr<Net> net) : net_(register_module("net", std::move(net))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    if (inputs.size() != kInputs)
      detail::refuse_input_count(kInputs, inputs.size());
    return detail::call_with(*net_, inputs, std::make_index_sequence<kInputs>());
  }

 private:
  std::shared_ptr<Net> net_;
};

}  // namespace treadle
