#include <treadle/core/model/model.h>

#include <optional>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/core/precision/precision.h>
#include <treadle/tensor/autocast.h>

namespace treadle {
namespace {

void convert(std::span<at::Tensor> tensors, c10::ScalarType dtype) {
  for (at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.is_floating_point())
      tensor = tensor.to(dtype);
  }
}

}  // namespace

void Model::operator()(const Inputs& inputs, Outputs& outputs, ForwardContext& context) {
  const Precision& precision = context.precision();
  std::optional<Float8Scope> float8;
  if (precision.float8) {
    const bool is_delayed = precision.float8 == Float8Scaling::kDelayed;
    TREADLE_EXPECTS(!is_delayed || float8_scales_ != nullptr,
                    "a model computes in fp8-delayed after prepare_for()");
    float8.emplace(
        Float8Use{*precision.float8, is_delayed ? float8_scales_ : nullptr, context.is_logging()});
  }
  if (!precision.converts()) {
    call_plugin(*this, "forward", [&] { forward(inputs, outputs, context); });
    return;
  }
  std::vector<at::Tensor> converted(inputs.begin(), inputs.end());
  convert(converted, precision.parameters);
  {
    std::optional<AutocastScope> scope;
    if (precision.autocast)
      scope.emplace(Autocast::on(converted.front().device().type(), *precision.autocast));
    call_plugin(*this, "forward", [&] { forward(converted, outputs, context); });
  }
  convert(outputs, precision.data());
  if (std::optional<DeferredOutput>& deferred = context.deferred_output()) {
    deferred->head = [head = std::move(deferred->head), precision](const at::Tensor& features) {
      std::optional<AutocastScope> scope;
      if (precision.autocast)
        scope.emplace(Autocast::on(features.device().type(), *precision.autocast));
      return head(features).to(precision.data());
    };
  }
}

void Model::prepare_for(const Precision& precision) {
  if (precision.float8 != Float8Scaling::kDelayed || float8_scales_ != nullptr)
    return;
  const std::string name(Float8Scales::kName);
  if (named_children().contains(name)) {
    throw DataError("the model has a part called \"" + name +
                    "\", which is the name of what fp8-delayed keeps; rename the part");
  }
  float8_scales_ = register_module(name, std::make_shared<Float8Scales>(*this));
}

std::shared_ptr<Model> ModelProvider::create(const ModelSpec& spec) const {
  TREADLE_EXPECTS(!spec.inputs.empty() && !spec.outputs.empty(),
                  "a model has at least one input and one output");
  std::shared_ptr<Model> model = call_plugin(*this, "create", [&] { return do_create(spec); });
  if (model == nullptr)
    refuse_result(*this, "create", "returned no model");
  model->set_origin(origin());
  return model;
}

}  // namespace treadle
