#include "schedule_free.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "element_type.h"
#include "flat_rules.h"
#include "runs.h"

namespace treadle::optimizers {

ScheduleFreeAdamW::ScheduleFreeAdamW(const Config& config)
    : learning_rate_(config.get<double>("learning_rate")),
      eps_(config.get<double>("eps")),
      weight_decay_(config.get<double>("weight_decay")),
      warmup_steps_(config.get<double>("warmup_steps")),
      r_(config.get<double>("r")),
      weight_lr_power_(config.get<double>("weight_lr_power")) {
  const auto betas = config.get<std::vector<double>>("betas");
  beta1_ = betas.at(0);
  beta2_ = betas.at(1);
  if (beta1_ == 0)
    config.fail("betas", "the first is the share of the mean and has to be above 0");
}

std::vector<SlotSpec> ScheduleFreeAdamW::do_slots() const {
  return {{"distance"},
          {"second_moment"},
          {"largest_rate", SlotSpec::Kind::kPerSegment},
          {"weight_sum", SlotSpec::Kind::kPerSegment}};
}

void ScheduleFreeAdamW::do_update(ParameterView& view) const {
  const HostParameters* const host = view.host();
  if (host == nullptr)
    return update_tensors(view);
  with_element_type(*host, [&]<typename T>(T) { update_as<T>(*host); });
}

// As ScheduleFreeRule, with the same roundings.
void ScheduleFreeAdamW::update_tensors(ParameterView& view) const {
  const double eps = above_zero(eps_, view.dtype());
  for (const ParameterPiece& layer : view.layers()) {
    const at::Tensor& t = layer.updates();
    const at::Tensor rate = warmup_steps_ > 0
                                ? view.learning_rate() * (t / warmup_steps_).clamp_max(1)
                                : view.learning_rate();
    const at::Tensor largest = at::maximum(layer.slot(kLargestRate), rate);
    const at::Tensor weight = at::pow(t, r_) * at::pow(largest, weight_lr_power_);
    const at::Tensor sum = layer.slot(kWeightSum) + weight;
    const at::Tensor c = at::where(sum.gt(0), weight / sum, at::zeros_like(sum));
    const at::Tensor& y = layer.parameters();
    const at::Tensor& g = layer.gradients();
    const at::Tensor d = layer.slot(kDistance).clone();
    const at::Tensor v = beta2_ * layer.slot(kSecondMoment) + (1 - beta2_) * (g * g);
    const at::Tensor root_correction = 1 / (1 - at::pow(beta2_, t)).sqrt();
    const at::Tensor u = g / (v.sqrt() * root_correction + eps) + weight_decay_ * y;
    layer.set_slot(kLargestRate, largest);
    layer.set_slot(kWeightSum, sum);
    layer.set_slot(kSecondMoment, v);
    layer.set_slot(kDistance, (1 - c) * (d - rate * beta1_ * u));
    layer.set_parameters(y + (c * d - rate * (1 - beta1_ * (1 - c)) * u));
  }
}

template <typename T>
void ScheduleFreeAdamW::update_as(const HostParameters& host) const {
  ScheduleFreeRule<T> rule{.scale = static_cast<T>(host.info().gradient_scale),
                           .beta2 = static_cast<T>(beta2_),
                           .one_minus_beta2 = static_cast<T>(1 - beta2_),
                           .root_correction = 0,
                           .eps = above_zero<T>(eps_),
                           .decay = static_cast<T>(weight_decay_),
                           .pull = 0,
                           .along = 0,
                           .keep = 0,
                           .apart = 0};
  const Vectors<T> vectors{host.parameters<T>(),
                           host.gradients<T>(),
                           {host.elements<T>(kDistance), host.elements<T>(kSecondMoment)}};
  double* const largest = host.numbers(kLargestRate);
  double* const sums = host.numbers(kWeightSum);
  const std::span<const Segment> segments = host.segments();
  double last_rate = -1;
  double last_c = -1;
  double last_t = -1;
  Range run;
  const auto finish = [&] {
    if (run.begin != run.end)
      apply(rule, vectors, run);
  };
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i].active())
      continue;
    const double t = host.updates()[i];
    const double rate =
        host.info().learning_rate * (warmup_steps_ > 0 ? std::min(1.0, t / warmup_steps_) : 1.0);
    largest[i] = std::max(largest[i], rate);
    const double weight = std::pow(t, r_) * std::pow(largest[i], weight_lr_power_);
    sums[i] += weight;
    const double c = sums[i] > 0 ? weight / sums[i] : 0;
    const Range range = range_of<T>(segments[i]);
    // One call for segments that follow each other and have the same numbers.
    if (range.begin != run.end || rate != last_rate || c != last_c || t != last_t) {
      finish();
      run = range;
      last_rate = rate;
      last_c = c;
      last_t = t;
      rule.root_correction = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2_, t)));
      rule.pull = static_cast<T>(c);
      rule.along = static_cast<T>(rate * (1 - beta1_ * (1 - c)));
      rule.keep = static_cast<T>(1 - c);
      rule.apart = static_cast<T>(rate * beta1_);
    }
    run.end = range.end;
  }
  finish();
}

at::Tensor ScheduleFreeAdamW::do_evaluation_weights(const at::Tensor& parameters,
                                                    const OptimizerSlots& slots) const {
  return parameters - (1 / beta1_ - 1) * slots.tensor(kDistance);
}

void* ScheduleFreeAdamW::do_ask(std::string_view interface_id) {
  return interface_id == EvaluationWeights::kInterface ? static_cast<EvaluationWeights*>(this)
                                                       : nullptr;
}

}  // namespace treadle::optimizers
