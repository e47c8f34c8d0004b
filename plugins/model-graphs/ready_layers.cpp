#include "ready_layers.h"

#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/layer.h>
#include <treadle/graph/ready_parts.h>

namespace treadle::model_graphs {
namespace {

using MakePart = graph::Part (*)(const Config& config, const LayerSpec& spec);

template <MakePart kMake>
class Ready final : public LayerFactory {
 public:
  explicit Ready(const Config& config) : config_(config) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return kMake(config_, spec).make()(spec);
  }

  Config config_;
};

std::int64_t width_of_stream(const LayerSpec& spec) {
  return spec.inputs.front().width();
}

template <graph::Part (*kPart)(bool broadcast)>
graph::Part merging(const Config& config, const LayerSpec&) {
  return kPart(config.get<bool>("broadcast"));
}

graph::Part cat(const Config& config, const LayerSpec&) {
  return graph::cat(config.get<std::int64_t>("dim"));
}

graph::Part grid_cat(const Config& config, const LayerSpec&) {
  return graph::grid_cat(config.json().at("grid").get<graph::GridPosition>(),
                         config.json().at("positions").get<std::vector<graph::GridPosition>>());
}

graph::Part reshape(const Config& config, const LayerSpec&) {
  return graph::reshape(config.get<std::vector<std::int64_t>>("shape"));
}

graph::Part softmax_router(const Config& config, const LayerSpec& spec) {
  return graph::softmax_router(width_of_stream(spec), config.get<std::int64_t>("num_experts"));
}

graph::Part sigmoid_router(const Config& config, const LayerSpec& spec) {
  return graph::sigmoid_router(width_of_stream(spec), config.get<std::int64_t>("num_experts"));
}

graph::Part fixed_selector(const Config& config, const LayerSpec&) {
  return graph::fixed_selector(config.get<std::int64_t>("branch"));
}

graph::Part argmax_selector(const Config& config, const LayerSpec& spec) {
  return graph::argmax_selector(width_of_stream(spec), config.get<std::int64_t>("num_branches"),
                                config.get<std::string>("by") == "row");
}

graph::Part threshold_halt(const Config& config, const LayerSpec&) {
  return graph::threshold_halt(config.get<double>("threshold"));
}

graph::Part learned_halt(const Config&, const LayerSpec& spec) {
  return graph::learned_halt(width_of_stream(spec));
}

template <graph::Part (*kPart)()>
graph::Part plain(const Config&, const LayerSpec&) {
  return kPart();
}

}  // namespace

void add_ready_layers(Registrar& registrar) {
  registrar.add<Ready<merging<graph::add>>, LayerFactory>("add");
  registrar.add<Ready<merging<graph::mean>>, LayerFactory>("mean");
  registrar.add<Ready<merging<graph::multiply>>, LayerFactory>("multiply");
  registrar.add<Ready<plain<graph::state_add>>, LayerFactory>("state_add");
  registrar.add<Ready<plain<graph::identity>>, LayerFactory>("identity");
  registrar.add<Ready<cat>, LayerFactory>("cat");
  registrar.add<Ready<grid_cat>, LayerFactory>("grid_cat");
  registrar.add<Ready<reshape>, LayerFactory>("reshape");
  registrar.add<Ready<softmax_router>, LayerFactory>("softmax_router");
  registrar.add<Ready<sigmoid_router>, LayerFactory>("sigmoid_router");
  registrar.add<Ready<fixed_selector>, LayerFactory>("fixed_selector");
  registrar.add<Ready<argmax_selector>, LayerFactory>("argmax_selector");
  registrar.add<Ready<threshold_halt>, LayerFactory>("threshold_halt");
  registrar.add<Ready<learned_halt>, LayerFactory>("learned_halt");
}

}  // namespace treadle::model_graphs
