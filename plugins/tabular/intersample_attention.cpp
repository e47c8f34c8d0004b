#include "intersample_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/core/model/linear.h>

#include "stream.h"

namespace treadle::tabular {

IntersampleAttention::IntersampleAttention(const Config& config, const LayerSpec& spec)
    : heads_(config.get<std::int64_t>("num_heads")),
      head_dim_(config.get<std::int64_t>("head_dim")),
      dropout_(config.get<double>("dropout")) {
  const std::int64_t width = width_of_rows(spec);
  const std::int64_t inner = heads_ * head_dim_;
  // As torch.nn.Linear.
  const auto uniform = [&](at::IntArrayRef sizes, std::int64_t fan_in) {
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    return at::empty(sizes, spec.dtype).uniform_(-bound, bound);
  };
  in_weight_ = register_parameter("in_weight", uniform({3 * inner, width}, width));
  out_weight_ = register_parameter("out_weight", uniform({width, inner}, inner));
  out_bias_ = register_parameter("out_bias", uniform({width}, inner));
  references_ = register_buffer(
      "references", at::zeros({config.get<std::int64_t>("references"), width}, spec.dtype));
  count_ = register_buffer("reference_count", at::zeros({1}, at::kLong));
}

void IntersampleAttention::begin_gathering() {
  const at::NoGradGuard no_gradients;
  references_.zero_();
  count_.zero_();
}

at::Tensor IntersampleAttention::split(const at::Tensor& rows) const {
  return rows.view({rows.size(0), heads_, head_dim_}).transpose(0, 1);
}

at::Tensor IntersampleAttention::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  const auto mapped = linear_in_precision(x, in_weight_, {}).chunk(3, -1);
  const at::Tensor queries =
      split(mapped[0].contiguous()).div(std::sqrt(static_cast<double>(head_dim_)));
  const at::Tensor keys = split(mapped[1].contiguous());
  const at::Tensor values = split(mapped[2].contiguous());
  at::Tensor mixed;
  if (is_training()) {
    mixed = among_rows(queries, keys, values);
    store(x.detach());
  } else {
    mixed = among_references(queries, keys, values);
  }
  const at::Tensor side_by_side = mixed.transpose(0, 1).reshape({x.size(0), heads_ * head_dim_});
  return linear_in_precision(side_by_side, out_weight_, out_bias_);
}

at::Tensor IntersampleAttention::among_rows(const at::Tensor& queries, const at::Tensor& keys,
                                            const at::Tensor& values) const {
  const at::Tensor weights = at::softmax(at::matmul(queries, keys.transpose(1, 2)), -1);
  return at::matmul(at::dropout(weights, dropout_, /*train=*/true), values);
}

at::Tensor IntersampleAttention::among_references(const at::Tensor& queries, const at::Tensor& keys,
                                                  const at::Tensor& values) const {
  const std::int64_t inner = heads_ * head_dim_;
  const std::int64_t most = references_.size(0);
  const auto mapped =
      linear_in_precision(references_, in_weight_.narrow(0, inner, 2 * inner), {}).chunk(2, -1);
  const at::Tensor other_keys = split(mapped[0].contiguous());
  const at::Tensor other_values = split(mapped[1].contiguous());
  // Those at the end are there.
  const at::Tensor is_absent = at::arange(most, count_.options()).lt(count_.neg().add(most));
  const at::Tensor to_others =
      at::matmul(queries, other_keys.transpose(1, 2))
          .masked_fill(is_absent, -std::numeric_limits<double>::infinity());
  const at::Tensor to_itself = queries.mul(keys).sum(-1, /*keepdim=*/true);
  const at::Tensor weights = at::softmax(at::cat({to_others, to_itself}, -1), -1);
  return at::matmul(weights.narrow(-1, 0, most), other_values)
      .add(weights.narrow(-1, most, 1).mul(values));
}

void IntersampleAttention::store(const at::Tensor& rows) {
  const at::NoGradGuard no_gradients;
  const std::int64_t most = references_.size(0);
  const std::int64_t kept = std::min(rows.size(0), most);
  const at::Tensor newest = rows.narrow(0, rows.size(0) - kept, kept);
  references_.copy_(
      at::cat({references_.narrow(0, kept, most - kept), newest.to(references_.scalar_type())}));
  count_.add_(kept).clamp_max_(most);
}

}  // namespace treadle::tabular
