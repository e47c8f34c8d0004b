#include <treadle/core/model.h>

#include <treadle/core/plugin_call.h>

namespace treadle {

void Model::operator()(const Inputs& inputs, Outputs& outputs, ForwardContext& context) {
  call_plugin(*this, "forward", [&] { forward(inputs, outputs, context); });
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
