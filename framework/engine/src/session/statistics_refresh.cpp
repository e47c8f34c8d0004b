#include <treadle/engine/statistics_refresh.h>

#include <optional>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/eval_mode_guard.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {
namespace {

/// A layer that gathers its statistics anew, up to its end.
class Gathering {
 public:
  explicit Gathering(GathersStatistics& layer) : layer_(&layer) { layer.begin_gathering(); }
  ~Gathering() {
    if (layer_ != nullptr)
      layer_->end_gathering();
  }
  Gathering(Gathering&& other) noexcept : layer_(std::exchange(other.layer_, nullptr)) {}
  Gathering& operator=(Gathering&&) = delete;

 private:
  GathersStatistics* layer_;
};

/// Within the model, which need not be owned by a pointer.
std::vector<GathersStatistics*> gathering_layers(const Model& model) {
  std::vector<GathersStatistics*> found;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* const layer = dynamic_cast<GathersStatistics*>(module.get()))
      found.push_back(layer);
  }
  return found;
}

/// The same of a batch norm of libtorch, and the momentum it has otherwise.
template <typename Layer>
class Counting {
 public:
  explicit Counting(Layer& layer) : layer_(&layer), momentum_(layer.options.momentum()) {
    layer.reset_running_stats();
    // No momentum: a cumulative average.
    auto none = momentum_;
    none.reset();
    layer.options.momentum(none);
  }
  ~Counting() {
    if (layer_ != nullptr)
      layer_->options.momentum(momentum_);
  }
  Counting(Counting&& other) noexcept
      : layer_(std::exchange(other.layer_, nullptr)), momentum_(other.momentum_) {}
  Counting& operator=(Counting&&) = delete;

 private:
  Layer* layer_;
  std::decay_t<decltype(std::declval<Layer&>().options.momentum())> momentum_;
};

template <typename Layer>
std::vector<Layer*> layers_with_statistics(const Model& model) {
  std::vector<Layer*> found;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    auto* layer = dynamic_cast<Layer*>(module.get());
    if (layer != nullptr && layer->running_mean.defined())
      found.push_back(layer);
  }
  return found;
}

template <typename Layer>
std::vector<Counting<Layer>> counting(const Model& model) {
  std::vector<Counting<Layer>> layers;
  for (Layer* layer : layers_with_statistics<Layer>(model))
    layers.emplace_back(*layer);
  return layers;
}

using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNorm2dImpl;
using torch::nn::BatchNorm3dImpl;

}  // namespace

bool gathers_statistics(const Model& model) {
  return dynamic_cast<const GathersStatistics*>(&model) != nullptr ||
         !gathering_layers(model).empty() ||
         !layers_with_statistics<BatchNorm1dImpl>(model).empty() ||
         !layers_with_statistics<BatchNorm2dImpl>(model).empty() ||
         !layers_with_statistics<BatchNorm3dImpl>(model).empty();
}

void refresh_statistics(Model& model, std::size_t outputs, BatchStream& stream, std::uint64_t seed,
                        std::stop_token stop, const Precision& precision) {
  const at::NoGradGuard no_gradients;
  const ModeGuard modes(model);
  model.train();
  std::vector<Gathering> layers;
  if (auto* const itself = dynamic_cast<GathersStatistics*>(&model))
    layers.emplace_back(*itself);
  for (GathersStatistics* const layer : gathering_layers(model))
    layers.emplace_back(*layer);
  const auto of_rows = counting<BatchNorm1dImpl>(model);
  const auto of_images = counting<BatchNorm2dImpl>(model);
  const auto of_volumes = counting<BatchNorm3dImpl>(model);
  ForwardContext context(stop, precision);
  context.set_calls_layers(true);
  Outputs out;
  const c10::Device device = device_of(model);
  TaskGenerators generators(device);
  generators.seed(seed);
  Batch batch;
  while (stream.next(batch)) {
    if (stop.stop_requested())
      throw Interrupted("stopped while the statistics of the average were gathered");
    out.assign(outputs, at::Tensor());
    // Not around the wait for a batch, in which this thread may work for another training.
    const TaskRandom random(generators);
    model(batch.to(device).inputs, out, context);
  }
}

}  // namespace treadle::engine
