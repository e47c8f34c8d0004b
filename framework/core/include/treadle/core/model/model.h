#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/model/forward_context.h>
#include <treadle/core/model/model_spec.h>

namespace treadle {

class Float8Scales;

/// One tensor per input port, in the order of ModelSpec::inputs: [B, port.shape...].
using Inputs = std::span<const at::Tensor>;
/// One tensor per output, in the order of ModelSpec::outputs: [B, output.shape...].
using Outputs = std::vector<at::Tensor>;

/// A network with named ports. Also a torch::nn::Module: parameters, buffers, train() and eval(),
/// names as in libtorch.
///
/// All per-call state lives in the context, so forward() may run concurrently on several threads in
/// eval mode. Randomness needs no care: libtorch's own random operators draw from the generator of
/// the task that runs them (see task_random.h).
class Model : public torch::nn::Module, public Provided {
 public:
  using torch::nn::Module::Module;
  ~Model() override;

  /// Calls forward() for the framework, in context.precision(): inputs are converted to the
  /// parameters' dtype, outputs to the data's. Exceptions get the model's origin.
  void operator()(const Inputs& inputs, Outputs& outputs, ForwardContext& context);

  /// Fills `outputs`, which arrives with one undefined tensor per output port.
  virtual void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) = 0;

  /// Registers what a training in `precision` keeps in the model. For what makes models, right
  /// after; needed for "fp8-delayed" alone.
  void prepare_for(const Precision& precision);
  /// Null unless prepared for "fp8-delayed".
  const std::shared_ptr<Float8Scales>& float8_scales() const { return float8_scales_; }

 private:
  std::shared_ptr<Float8Scales> float8_scales_;
};

// Further abilities of a model, found by dynamic_cast, are in abilities/.

/// Builds models. create() gives the same structure, names and shapes every time: it is called for
/// every fold, trial and replica, whose parameters are then moved into an arena. `clone()` is never
/// used.
class ModelProvider : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.model/0";

  ~ModelProvider() override;

  /// Initial weights are drawn from the calling task's random stream, in spec.dtype. Throws a
  /// DataError or DocumentError when the model cannot take such inputs.
  std::shared_ptr<Model> create(const ModelSpec& spec) const;

 private:
  virtual std::shared_ptr<Model> do_create(const ModelSpec& spec) const = 0;
};

namespace detail {
template <typename Net, std::size_t... I>
at::Tensor call_with(Net& module, const Inputs& inputs, std::index_sequence<I...>) {
  return module.forward(inputs[I]...);
}
}  // namespace detail

/// Any module with `Tensor forward(Tensor, …)` (`Ports` of them) as a Model with one output. Its
/// parameters keep their names behind "net.".
template <std::size_t Ports, typename Net>
class AdaptedModel : public Model {
 public:
  explicit AdaptedModel(std::shared_ptr<Net> module)
      : module_(register_module("net", std::move(module))) {}

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    TREADLE_EXPECTS(inputs.size() == Ports, "this module takes " + std::to_string(Ports) +
                                                " inputs, got " + std::to_string(inputs.size()));
    outputs[0] = detail::call_with(*module_, inputs, std::make_index_sequence<Ports>());
  }

 private:
  std::shared_ptr<Net> module_;
};

template <std::size_t Ports = 1, typename Net>
std::shared_ptr<Model> adapt(std::shared_ptr<Net> module) {
  return std::make_shared<AdaptedModel<Ports, Net>>(std::move(module));
}

}  // namespace treadle
