#include "muon.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/lerp.h>

#include "newton_schulz.h"

namespace treadle::optimizers {
namespace {

constexpr double kRestRate = 1e-3;

/// None where AdamW updates the segment.
Matrices hidden_matrices(const Segment& segment) {
  const bool is_hidden =
      segment.role == ParameterRole::kHidden || segment.role == ParameterRole::kStack;
  return is_hidden ? matrices_of(segment) : Matrices{};
}

}  // namespace

Muon::Muon(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      momentum_(config.get<double>("momentum")),
      nesterov_(config.get<bool>("nesterov")),
      weight_decay_(config.get<double>("weight_decay")),
      is_cautious_(config.get<bool>("cautious_weight_decay")),
      matches_adamw_(config.get<std::string>("adjust_lr_fn") == "match_rms_adamw"),
      rest_share_(config.get_or<double>("adamw_learning_rate",
                                        matches_adamw_ ? learning_rate_ : kRestRate) /
                  learning_rate_),
      rest_(config) {}

std::vector<SlotSpec> Muon::do_slots() const {
  const auto of_adamw = [](const Segment& segment) -> std::vector<std::int64_t> {
    return {hidden_matrices(segment).count == 0 ? segment.size : 0};
  };
  return {{"first_moment"},
          {"second_moment", SlotSpec::Kind::kTensor, 0, SlotSpec::Storage::kFull, of_adamw}};
}

void Muon::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  std::vector<std::pair<Matrices, Layers>> by_shape;
  at::Tensor rest_rate;
  for (const ParameterPiece& layer : view.layers()) {
    const Matrices shape = hidden_matrices(layer.segment());
    if (shape.count > 0) {
      const Matrices one{1, shape.rows, shape.columns};
      auto known = std::find_if(by_shape.begin(), by_shape.end(),
                                [&](const auto& group) { return group.first == one; });
      if (known == by_shape.end())
        known = by_shape.insert(by_shape.end(), {one, {}});
      known->second.push_back(&layer);
    } else if (host != nullptr) {
      const auto index = static_cast<std::size_t>(&layer.segment() - host->segments().data());
      rest_.update(*host, index, host->info().learning_rate * rest_share_, kFirstMoment,
                   kSecondMoment);
    } else {
      if (!rest_rate.defined())
        rest_rate = view.learning_rate() * rest_share_;
      rest_.update(layer, rest_rate, view.dtype(), kFirstMoment, kSecondMoment);
    }
  }
  for (const auto& [shape, layers] : by_shape)
    update_matrices(layers, shape, view.learning_rate());
}

/// Of one shape: [rows, columns], whatever stacks they are in.
void Muon::update_matrices(const Layers& layers, Matrices shape, const at::Tensor& rate) const {
  std::vector<at::Tensor> directions;
  for (const ParameterPiece* layer : layers) {
    const at::Tensor& g = layer->gradients();
    const at::Tensor m = at::lerp(layer->slot(kFirstMoment), g, 1 - momentum_);
    layer->set_slot(kFirstMoment, m);
    directions.push_back(
        (nesterov_ ? at::lerp(g, m, momentum_) : m).reshape({-1, shape.rows, shape.columns}));
  }
  const at::Tensor all =
      newton_schulz(directions.size() == 1 ? directions.front() : at::cat(directions)) *
      factor_of(shape);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::int64_t count = directions[i].size(0);
    move(*layers[i], all.narrow(0, begin, count).reshape(layers[i]->parameters().sizes()), rate);
    begin += count;
  }
}

void Muon::move(const ParameterPiece& layer, const at::Tensor& direction,
                const at::Tensor& rate) const {
  const at::Tensor& p = layer.parameters();
  if (weight_decay_ == 0)
    return layer.set_parameters(p - rate * direction);
  at::Tensor decay = rate * weight_decay_ * p;
  if (is_cautious_)
    decay = decay * (direction * p).ge(0);
  layer.set_parameters(p - decay - rate * direction);
}

double Muon::factor_of(Matrices shape) const {
  if (matches_adamw_)
    return 0.2 * std::sqrt(static_cast<double>(shape.longest()));
  const double ratio = static_cast<double>(shape.rows) / static_cast<double>(shape.columns);
  return std::sqrt(std::max(1.0, ratio));
}

std::string Muon::do_rule_of(const Segment& segment) const {
  if (hidden_matrices(segment).count > 0)
    return "muon";
  return segment.role == ParameterRole::kHidden
             ? "adamw"
             : "adamw (" + std::string(name_of(segment.role)) + ")";
}

void* Muon::do_ask(std::string_view interface_id) {
  return interface_id == NamesRules::kInterface ? static_cast<NamesRules*>(this) : nullptr;
}

}  // namespace treadle::optimizers
