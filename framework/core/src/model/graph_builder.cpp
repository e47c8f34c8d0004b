#include <treadle/core/model/graph_builder.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {

nlohmann::json GraphBuilder::build(const LayerSpec& spec) const {
  TREADLE_EXPECTS(!spec.inputs.empty(), "a graph has at least one input");
  nlohmann::json steps = call_plugin(*this, "build", [&] { return do_build(spec); });
  if (!steps.is_array())
    refuse_result(*this, "build", "returned no array of steps but " + describe_value(steps));
  if (steps.empty())
    refuse_result(*this, "build", "returned no step");
  return steps;
}

}  // namespace treadle
