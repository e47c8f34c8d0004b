#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {

/// A layer of this plugin for rows of this shape, float64.
inline std::shared_ptr<Layer> layer_on(const std::string& name, const nlohmann::json& parameters,
                                       std::vector<std::int64_t> row) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  const TaskRandom random(1);
  row.insert(row.begin(), TensorSpec::kVaries);
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {TensorSpec(std::move(row), at::kDouble)};
  return plugin.make<LayerFactory>(name, parameters)->create(spec);
}

inline at::Tensor result_on(Layer& layer, const at::Tensor& x) {
  LayerContext context;
  return layer.forward({&x, 1}, context);
}

}  // namespace treadle::testing
