#include "recurrent_forecasters.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::forecasting {

RecurrentNetwork::RecurrentNetwork(const Config& config, std::string layer)
    : layer_(std::move(layer)),
      hidden_size_(config.get<std::int64_t>("hidden_size")),
      layers_(config.get<std::int64_t>("num_layers")),
      dropout_(config.get<double>("dropout")) {}

RecurrentNetwork::~RecurrentNetwork() = default;

nlohmann::json RecurrentNetwork::do_build(const LayerSpec& spec) const {
  const TensorSpec& windows = spec.inputs.front();
  if (spec.inputs.size() != 1 || windows.sizes.size() != 3)
    throw DataError("takes windows [B, steps, channels], got " + windows.text());
  return nlohmann::json::array({{{"use", layer_},
                                 {"hidden_size", hidden_size_},
                                 {"num_layers", layers_},
                                 {"dropout", dropout_},
                                 {"return_sequences", false},
                                 {"name", "encoder"}},
                                {{"use", "head"}, {"name", "head"}}});
}

}  // namespace treadle::forecasting
