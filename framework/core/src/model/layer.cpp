#include <treadle/core/model/layer.h>

#include <algorithm>
#include <string>

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/model/factory_of.h>
#include <treadle/tensor/eval_mode_guard.h>

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

/// The spec of a tensor that was computed twice: sizes that differ vary.
TensorSpec spec_where_varied(const at::Tensor& two, const at::Tensor& three) {
  TensorSpec spec = TensorSpec::of(two);
  if (three.dim() != two.dim())
    return spec;
  for (std::size_t i = 0; i < spec.sizes.size(); ++i) {
    if (three.size(static_cast<std::int64_t>(i)) != spec.sizes[i])
      spec.sizes[i] = TensorSpec::kVaries;
  }
  return spec;
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

std::optional<std::size_t> LayerContext::index_of(std::string_view output) const {
  const auto found = std::find(requested_.begin(), requested_.end(), output);
  return found == requested_.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - requested_.begin()));
}

void LayerContext::set_output(std::string_view name, at::Tensor value) {
  if (const auto index = index_of(name))
    outputs_[*index] = std::move(value);
}

void LayerContext::request_outputs(std::span<const std::string> names) {
  requested_ = names;
  outputs_.assign(names.size(), at::Tensor());
}

std::vector<at::Tensor> LayerContext::take_outputs() {
  for (std::size_t i = 0; i < requested_.size(); ++i) {
    if (!outputs_[i].defined()) {
      throw DataError("it names the output \"" + requested_[i] +
                      "\" but did not set it; pass it to LayerContext::set_output()");
    }
  }
  return std::move(outputs_);
}

TensorSpec Layer::result(std::span<const TensorSpec> inputs) {
  return do_result(inputs);
}

std::vector<TensorSpec> Layer::results(std::span<const TensorSpec> inputs,
                                       std::span<const std::string> outputs) {
  if (outputs.empty())
    return {result(inputs)};
  std::vector<TensorSpec> results = tried_on_zeros(inputs, outputs);
  results.front() = result(inputs);
  return results;
}

TensorSpec Layer::tried_on_zeros(std::span<const TensorSpec> inputs) {
  return tried_on_zeros(inputs, {}).front();
}

std::vector<TensorSpec> Layer::tried_on_zeros(std::span<const TensorSpec> inputs,
                                              std::span<const std::string> outputs) {
  const EvalModeGuard eval_mode(*this);
  const at::NoGradGuard no_gradients;
  const auto tried = [&](std::int64_t varying) {
    StateDict state;
    LayerReports reports;
    LayerContext context({}, state, reports);
    context.request_outputs(outputs);
    std::vector<at::Tensor> values{forward(zeros_of(inputs, varying), context)};
    if (!values.front().defined())
      throw DataError("a layer returned no tensor");
    for (at::Tensor& output : context.take_outputs())
      values.push_back(std::move(output));
    return values;
  };
  const std::vector<at::Tensor> twos = tried(2);
  const std::vector<at::Tensor> threes = tried(3);
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < twos.size(); ++i)
    specs.push_back(spec_where_varied(twos[i], threes[i]));
  return specs;
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

const TensorSpec& only_input(const LayerSpec& spec) {
  if (spec.inputs.size() != 1)
    throw DataError("takes one input, got " + std::to_string(spec.inputs.size()));
  return spec.inputs.front();
}

}  // namespace treadle
