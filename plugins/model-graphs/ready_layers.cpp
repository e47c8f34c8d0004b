#include "ready_layers.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/core/model/layer.h>
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

/// One that its parameters alone decide on: mistakes in them show when it is made.
template <graph::Part (*kMake)(const Config& config)>
class Fixed final : public LayerFactory {
 public:
  explicit Fixed(const Config& config) : part_(made(config)) {}

 private:
  static graph::Part made(const Config& config) {
    try {
      return kMake(config);
    } catch (const DataError& error) {
      config.fail("", error.what());
    }
  }
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return part_.make()(spec);
  }

  graph::Part part_;
};

std::int64_t width_of_stream(const LayerSpec& spec) {
  return spec.inputs.front().width();
}

template <graph::Part (*kPart)(bool broadcast)>
graph::Part merging(const Config& config) {
  return kPart(config.get<bool>("broadcast"));
}

graph::Part cat(const Config& config) {
  return graph::cat(config.get<std::int64_t>("dim"));
}

graph::Part grid_cat(const Config& config) {
  const auto grid = config.json().at("grid").get<graph::GridPosition>();
  const auto positions = config.json().at("positions").get<std::vector<graph::GridPosition>>();
  graph::expect_grid_positions(grid, positions);
  return graph::grid_cat(grid, positions);
}

graph::Part reshape(const Config& config) {
  return graph::reshape(config.get<std::vector<std::int64_t>>("shape"));
}

/// The sizes of nested lists, which are of one length at each level.
void add_sizes(const nlohmann::json& value, std::size_t level, std::vector<std::int64_t>& sizes,
               std::vector<double>& numbers) {
  if (!value.is_array()) {
    if (level != sizes.size() || !value.is_number()) {
      throw DataError("has a \"value\" other than a number or lists of them, at " + value.dump());
    }
    numbers.push_back(value.get<double>());
    return;
  }
  const auto size = static_cast<std::int64_t>(value.size());
  if (size == 0)
    throw DataError("has an empty list in \"value\"");
  if (numbers.empty() && level == sizes.size())
    sizes.push_back(size);
  if (level >= sizes.size() || sizes[level] != size) {
    throw DataError("has lists of different lengths in \"value\": " +
                    std::to_string(level < sizes.size() ? sizes[level] : 0) + " and " +
                    std::to_string(size));
  }
  for (const nlohmann::json& one : value)
    add_sizes(one, level + 1, sizes, numbers);
}

/// Its numbers are looked at when it is made; a tensor of them, which may be large, is not.
class Constant final : public LayerFactory {
 public:
  explicit Constant(const Config& config)
      : shape_(config.find<std::vector<std::int64_t>>("shape")) {
    try {
      add_sizes(config.json().at("value"), 0, sizes_, numbers_);
      if (shape_ && !sizes_.empty())
        throw DataError("has a \"shape\", which is for a \"value\" that is one number");
    } catch (const DataError& error) {
      config.fail("", error.what());
    }
  }

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    const at::Tensor value = at::tensor(numbers_, at::kDouble).view(sizes_);
    return graph::constant(shape_ ? value.expand(*shape_) : value).make()(spec);
  }

  std::optional<std::vector<std::int64_t>> shape_;
  std::vector<std::int64_t> sizes_;
  std::vector<double> numbers_;
};

graph::Part parameter(const Config& config) {
  return graph::parameter(config.get<std::vector<std::int64_t>>("shape"),
                          config.get<double>("mean"), config.get<double>("std"));
}

graph::Part softmax_router(const Config& config, const LayerSpec& spec) {
  return graph::softmax_router(width_of_stream(spec), config.get<std::int64_t>("num_experts"));
}

graph::Part sigmoid_router(const Config& config, const LayerSpec& spec) {
  return graph::sigmoid_router(width_of_stream(spec), config.get<std::int64_t>("num_experts"));
}

graph::Part fixed_selector(const Config& config) {
  return graph::fixed_selector(config.get<std::int64_t>("branch"));
}

graph::Part argmax_selector(const Config& config, const LayerSpec& spec) {
  return graph::argmax_selector(width_of_stream(spec), config.get<std::int64_t>("num_branches"),
                                config.get<std::string>("by") == "row");
}

graph::Part threshold_halt(const Config& config) {
  return graph::threshold_halt(config.get<double>("threshold"));
}

graph::Part learned_halt(const Config&, const LayerSpec& spec) {
  return graph::learned_halt(width_of_stream(spec));
}

template <graph::Part (*kPart)()>
graph::Part plain(const Config&) {
  return kPart();
}

}  // namespace

void add_ready_layers(Registrar& registrar) {
  registrar.add<Fixed<merging<graph::add>>, LayerFactory>("add");
  registrar.add<Fixed<merging<graph::mean>>, LayerFactory>("mean");
  registrar.add<Fixed<merging<graph::multiply>>, LayerFactory>("multiply");
  registrar.add<Fixed<plain<graph::state_add>>, LayerFactory>("state_add");
  registrar.add<Fixed<plain<graph::identity>>, LayerFactory>("identity");
  registrar.add<Fixed<cat>, LayerFactory>("cat");
  registrar.add<Fixed<grid_cat>, LayerFactory>("grid_cat");
  registrar.add<Fixed<reshape>, LayerFactory>("reshape");
  registrar.add<Constant, LayerFactory>("constant");
  registrar.add<Fixed<parameter>, LayerFactory>("parameter");
  registrar.add<Ready<softmax_router>, LayerFactory>("softmax_router");
  registrar.add<Ready<sigmoid_router>, LayerFactory>("sigmoid_router");
  registrar.add<Fixed<fixed_selector>, LayerFactory>("fixed_selector");
  registrar.add<Ready<argmax_selector>, LayerFactory>("argmax_selector");
  registrar.add<Fixed<threshold_halt>, LayerFactory>("threshold_halt");
  registrar.add<Ready<learned_halt>, LayerFactory>("learned_halt");
}

}  // namespace treadle::model_graphs
