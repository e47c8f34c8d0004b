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
#include <treadle/core/model.h>
#include <treadle/core/model_spec.h>
#include <treadle/core/state_dict.h>
#include <treadle/core/tensor_spec.h>

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

// Further abilities of a layer, or of a module adapted as one. A graph detects them when it is
// built, by dynamic_cast.

/// Takes undefined inputs, for states that are not written yet.
class TakesAbsent {
 public:
  virtual ~TakesAbsent();
};

/// Names its references; they are passed in this order.
class NamesReferences {
 public:
  virtual ~NamesReferences();
  virtual std::vector<std::string> reference_names() const = 0;
};

/// Has outputs beside the one that forward() returns: the last state of a recurrent layer, the
/// weights of attention. A document tags them by name: "tag": {"h_n": "memory"}.
///
/// forward() passes each that is requested to LayerContext::set_output(): its rows, and a gradient
/// where it is of floating-point numbers. What forward() returns is the same, whatever is
/// requested.
class NamesOutputs {
 public:
  virtual ~NamesOutputs();
  /// Of the outputs after the first, each once; never "output", which is the first.
  virtual std::vector<std::string> output_names() const = 0;
};

/// Is notified when a forward pass of its graph begins.
class BeginsForward {
 public:
  virtual ~BeginsForward();
  /// `rows`: the first dimension of the graph's first input.
  virtual void begin_forward(std::int64_t rows, at::Device device, LayerContext& context) = 0;
};

/// A stateful layer: keeps state between calls in LayerContext::state(). Graphs check for this
/// before they call a layer several times per backward pass, or with different rows. Also a model
/// whose ForwardContext::state() may be empty after a batch, and not after a later one: its batches
/// are evaluated one after the other.
class KeepsState {
 public:
  virtual ~KeepsState();
  virtual bool keeps_state() const { return true; }
};

/// Records a value of each round of a loop.
class Traced {
 public:
  virtual ~Traced();
  /// `state`: the output of the round, or the input of the first.
  virtual at::Tensor trace(const at::Tensor& state) const = 0;
};

/// Adds terms to the loss (LayerContext::add_loss). A graph runs it by itself, never beside other
/// branches, and node by node while losses are taken: what it adds is a part of the gradient.
class AddsLosses {
 public:
  virtual ~AddsLosses();
  virtual std::vector<std::string> loss_names() const = 0;
};

/// Computes with one weight, a matrix or a kernel, for which another tensor of its sizes may stand:
/// what `weight_norm` makes of it.
class TakesWeight {
 public:
  virtual ~TakesWeight();
  /// A parameter of the layer, which forward() uses.
  virtual const at::Tensor& own_weight() const = 0;
  /// forward() with `weight` in place of own_weight(), and a gradient for it.
  virtual at::Tensor forward_with(const at::Tensor& weight, const Inputs& inputs,
                                  LayerContext& context) = 0;
  /// Which dimension of the weight is that of the layer's outputs.
  virtual std::int64_t output_dim() const { return 0; }
};

/// Computes each vector along the last dimension of its one input by itself and alike, without
/// state or random numbers: forward() of some positions, [n, in], gives what forward() of all gives
/// there, but for rounding. At the end of a model its output can be deferred (chunked_loss.h).
class ActsOnPositions {
 public:
  virtual ~ActsOnPositions();
  virtual bool acts_on_positions() const { return true; }
};

/// Has buffers that its training forward() changes, as batch normalization has running means and
/// variances (running_statistics.h). They belong to the weights in use then: for weights that no
/// step produced, such as an average, they are gathered anew.
class GathersStatistics {
 public:
  virtual ~GathersStatistics();
  /// Forgets them. Up to end_gathering() every training forward() counts the same, whatever the
  /// momentum of ordinary training, and one thread calls it. They then are those of the weights and
  /// the batches, whatever they were before.
  virtual void begin_gathering() = 0;
  virtual void end_gathering() = 0;
};

/// Takes integers or booleans: indices into vocabularies, lengths, masks. A layer that does not is
/// given floating-point numbers only; a graph refuses everything else when it is built.
class TakesIndices {
 public:
  virtual ~TakesIndices();
  /// Whether input `index` may be of integers or booleans; 0 is the stream.
  virtual bool takes_indices(std::size_t index) const {
    static_cast<void>(index);
    return true;
  }
};

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
