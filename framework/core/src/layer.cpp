#include <treadle/core/layer.h>

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/in_evaluation.h>
#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

std::vector<at::Tensor> zeros_of(std::span<const TensorSpec> specs, std::int64_t varying) {
  std::vector<at::Tensor> zeros;
  for (const TensorSpec& spec : specs) {
    if (spec.is_absent()) {
      zeros.emplace_back();
      continue;
    }
    std::vector<std::int64_t> sizes = spec.sizes;
    for (std::int64_t& size : sizes) {
      if (size == TensorSpec::kVaries)
        size = varying;
    }
    zeros.push_back(at::zeros(sizes, spec.dtype));
  }
  return zeros;
}

}  // namespace

LayerContext::LayerContext(std::stop_token stop)
    : own_(std::make_unique<Own>()),
      stop_(std::move(stop)),
      state_(own_->state),
      reports_(own_->reports) {}

void LayerContext::log(std::string_view name, const at::Tensor& value,
                       std::optional<Reduction> by) {
  // At once: a plan uses the value's memory again.
  if (reports_.takes_logs)
    reports_.list.push_back({std::string(name), reduced(name, value, by), false});
}

void LayerContext::add_loss(std::string_view name, at::Tensor sum) {
  if (!reports_.takes_losses)
    return;
  if (!sum.defined() || sum.dim() != 0) {
    throw DataError("adds the loss \"" + std::string(name) + "\" as " + TensorSpec::of(sum).text() +
                    "; a loss is one number, the sum over rows, without dimensions");
  }
  reports_.list.push_back({std::string(name), std::move(sum), true});
}

TensorSpec Layer::result(std::span<const TensorSpec> inputs) {
  return do_result(inputs);
}

TensorSpec Layer::tried_on_zeros(std::span<const TensorSpec> inputs) {
  const InEvaluation in_evaluation(*this);
  const at::NoGradGuard no_gradients;
  StateDict state;
  LayerReports reports;
  LayerContext context({}, state, reports);
  const at::Tensor two = forward(zeros_of(inputs, 2), context);
  state = {};
  const at::Tensor three = forward(zeros_of(inputs, 3), context);
  if (!two.defined() || !three.defined())
    throw DataError("a layer returned no tensor");
  TensorSpec result = TensorSpec::of(two);
  if (three.dim() == two.dim()) {
    for (std::size_t i = 0; i < result.sizes.size(); ++i) {
      if (three.size(static_cast<std::int64_t>(i)) != result.sizes[i])
        result.sizes[i] = TensorSpec::kVaries;
    }
  }
  return result;
}

std::shared_ptr<Layer> LayerFactory::create(const LayerSpec& spec) const {
  TREADLE_EXPECTS(!spec.inputs.empty(), "a layer has at least one input");
  std::shared_ptr<Layer> layer = call_plugin(*this, "create", [&] { return do_create(spec); });
  if (layer == nullptr)
    refuse_result(*this, "create", "returned no layer");
  layer->set_origin(origin());
  return layer;
}

void detail::refuse_input_count(std::size_t taken, std::size_t given) {
  throw DataError("takes " + std::to_string(taken) + (taken == 1 ? " input" : " inputs") +
                  ", got " + std::to_string(given));
}

}  // namespace treadle
