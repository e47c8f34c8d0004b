#include "adaptive_log_softmax.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

#include "simplex.h"
#include "stream.h"

namespace treadle::softmax {
namespace {

using Parent = std::shared_ptr<torch::nn::Module>;

Parent child_of(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>(name));
}

}  // namespace

void AdaptiveLogSoftmax::check(const Config& config) {
  const auto classes = config.get<std::int64_t>("num_classes");
  std::int64_t last = 0;
  for (const std::int64_t cutoff : config.get<std::vector<std::int64_t>>("cutoffs")) {
    if (cutoff <= last || cutoff >= classes) {
      config.fail("cutoffs", "are numbers of classes that rise and are below the " +
                                 std::to_string(classes) + " of \"num_classes\"; " +
                                 std::to_string(cutoff) + " is not");
    }
    last = cutoff;
  }
}

AdaptiveLogSoftmax::AdaptiveLogSoftmax(const Config& config, const LayerSpec& spec) {
  const TensorSpec& stream = only_input(spec);
  if (stream.sizes.size() < 2 || stream.sizes.back() == TensorSpec::kVaries)
    throw DataError("takes rows [B, ..., width] of a known width, got " + stream.text());
  const std::int64_t width = stream.width();
  auto cutoffs = config.get<std::vector<std::int64_t>>("cutoffs");
  const auto clusters = static_cast<std::int64_t>(cutoffs.size());
  cutoffs.push_back(config.get<std::int64_t>("num_classes"));
  in_head_ = cutoffs.front();

  const Parent head = child_of(*this, "head");
  const LinearMap of_head = initial_linear(width, in_head_ + clusters, spec.dtype);
  head_weight_ = head->register_parameter("weight", of_head.weight);
  if (config.get<bool>("head_bias"))
    head_bias_ = head->register_parameter("bias", of_head.bias);

  const Parent tail = child_of(*this, "tail");
  const auto div = config.get<double>("div_value");
  for (std::size_t i = 0; i + 1 < cutoffs.size(); ++i) {
    const auto wanted = std::floor(static_cast<double>(width) / std::pow(div, i + 1));
    const std::int64_t inner = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
    const std::int64_t size = cutoffs[i + 1] - cutoffs[i];
    const Parent cluster = child_of(*tail, std::to_string(i));
    clusters_.push_back(
        {child_of(*cluster, "0")
             ->register_parameter("weight", initial_linear(width, inner, spec.dtype).weight),
         child_of(*cluster, "1")
             ->register_parameter("weight", initial_linear(inner, size, spec.dtype).weight)});
  }
}

at::Tensor AdaptiveLogSoftmax::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  const at::Tensor head =
      at::log_softmax(widened(linear_in_precision(x, head_weight_, head_bias_)), -1);
  std::vector<at::Tensor> parts{head.narrow(-1, 0, in_head_)};
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const at::Tensor inner = linear_in_precision(x, clusters_[i].projection, at::Tensor());
    const at::Tensor logits = linear_in_precision(inner, clusters_[i].weight, at::Tensor());
    const auto cluster = in_head_ + static_cast<std::int64_t>(i);
    parts.push_back(at::log_softmax(widened(logits), -1).add(head.narrow(-1, cluster, 1)));
  }
  return at::cat(parts, -1).to(x.scalar_type());
}

}  // namespace treadle::softmax
