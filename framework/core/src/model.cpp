#include <treadle/core/model.h>

namespace treadle {

std::shared_ptr<Model> ModelProvider::create(const ModelSpec& spec) const {
  TREADLE_EXPECTS(!spec.inputs.empty() && !spec.outputs.empty(),
                  "a model has at least one input and one output");
  std::shared_ptr<Model> model = do_create(spec);
  TREADLE_EXPECTS(model != nullptr, "create() returned no model");
  return model;
}

}  // namespace treadle
