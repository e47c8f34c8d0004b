#include "schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>

namespace treadle::schedules {
namespace {

void expect_some_time(const Config& config, std::string_view key, const Duration& duration) {
  if (duration.value <= 0)
    config.fail(key, "must be longer than 0, got \"" + duration.text() + "\"");
}

std::int64_t at_least_one_step(const Duration& duration, const ScheduleSpan& span) {
  return std::max<std::int64_t>(1, span.steps(duration));
}

std::vector<Duration> durations(const Config& config, std::string_view key) {
  std::vector<Duration> all;
  for (const std::string& text : config.get<std::vector<std::string>>(key))
    all.push_back(Duration::parse(text));
  return all;
}

/// Of different units only a training knows which comes first.
void expect_rising(const Config& config, std::string_view key, const std::vector<Duration>& times) {
  for (std::size_t i = 1; i < times.size(); ++i) {
    const Duration& before = times[i - 1];
    if (before.unit == times[i].unit && times[i].value <= before.value) {
      config.fail(key, "each must be later than the one before it, got \"" + times[i].text() +
                           "\" after \"" + before.text() + "\"");
    }
  }
}

double half_cosine(double start, double end, double progress) {
  return end + (start - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

double line(double start, double end, double progress) {
  return start + (end - start) * progress;
}

}  // namespace

Constant::Constant(const Config&) {}

double Constant::do_rate_at(std::int64_t, const ScheduleSpan& span) const {
  return span.base_rate;
}

StepDecay::StepDecay(const Config& config)
    : size_(config.get<Duration>("step_size")), gamma_(config.get<double>("gamma")) {
  expect_some_time(config, "step_size", size_);
}

double StepDecay::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t stretches = span.within(step) / at_least_one_step(size_, span);
  return span.base_rate * std::pow(gamma_, static_cast<double>(stretches));
}

Descent::Descent(const Config& config, double end_rate)
    : end_rate_(end_rate), length_(config.find<Duration>("length")) {
  if (length_)
    expect_some_time(config, "length", *length_);
}

double Descent::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t length = length_ ? at_least_one_step(*length_, span) : span.end();
  if (step >= length)
    return end_rate_;
  if (step == 0)
    return span.base_rate;  // end + (base - end) may round
  const double progress = static_cast<double>(step) / static_cast<double>(length);
  return end_rate_ + (span.base_rate - end_rate_) * rest_at(progress);
}

Cosine::Cosine(const Config& config) : Descent(config, config.get<double>("min_rate")) {}

double Cosine::rest_at(double progress) const {
  return 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

Linear::Linear(const Config& config) : Descent(config, config.get<double>("end_rate")) {}

double Linear::rest_at(double progress) const {
  return 1 - progress;
}

Polynomial::Polynomial(const Config& config)
    : Descent(config, config.get<double>("end_rate")), power_(config.get<double>("power")) {}

double Polynomial::rest_at(double progress) const {
  return std::pow(1 - progress, power_);
}

Exponential::Exponential(const Config& config)
    : gamma_(config.get<double>("gamma")), decay_(config.get<Duration>("decay")) {
  expect_some_time(config, "decay", decay_);
}

double Exponential::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const auto decay = static_cast<double>(at_least_one_step(decay_, span));
  return span.base_rate * std::pow(gamma_, static_cast<double>(span.within(step)) / decay);
}

MultiStep::MultiStep(const Config& config)
    : milestones_(durations(config, "milestones")), gamma_(config.get<double>("gamma")) {
  expect_rising(config, "milestones", milestones_);
}

double MultiStep::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t now = span.within(step);
  const auto passed = std::count_if(milestones_.begin(), milestones_.end(),
                                    [&](const Duration& at) { return span.steps(at) <= now; });
  return span.base_rate * std::pow(gamma_, static_cast<double>(passed));
}

CosineRestarts::CosineRestarts(const Config& config)
    : period_(config.get<Duration>("period")),
      period_factor_(config.get<std::int64_t>("period_factor")),
      min_rate_(config.get<double>("min_rate")) {
  expect_some_time(config, "period", period_);
}

double CosineRestarts::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  std::int64_t period = at_least_one_step(period_, span);
  std::int64_t since = span.within(step);
  if (period_factor_ == 1)
    since %= period;
  while (since >= period) {
    since -= period;
    period *= period_factor_;
  }
  if (since == 0)
    return span.base_rate;  // min + (base - min) may round
  return half_cosine(span.base_rate, min_rate_,
                     static_cast<double>(since) / static_cast<double>(period));
}

OneCycle::OneCycle(const Config& config)
    : length_(config.find<Duration>("length")),
      pct_start_(config.get<double>("pct_start")),
      div_factor_(config.get<double>("div_factor")),
      final_div_factor_(config.get<double>("final_div_factor")),
      three_phase_(config.get<bool>("three_phase")),
      anneal_(config.get<std::string>("anneal_strategy") == "linear" ? line : half_cosine) {
  if (length_)
    expect_some_time(config, "length", *length_);
  if (three_phase_ && pct_start_ > 0.5) {
    config.fail("pct_start",
                "of three phases the second is as long as the first: must be at most 0.5, got " +
                    config.json().at("pct_start").dump());
  }
}

double OneCycle::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  struct Phase {
    double last_step;
    double end_rate;
  };
  const std::int64_t length = length_ ? at_least_one_step(*length_, span) : span.end();
  const auto total = static_cast<double>(length);
  const auto now = static_cast<double>(std::min(step, length - 1));
  const double initial = span.base_rate / div_factor_;
  const Phase up{pct_start_ * total - 1, span.base_rate};
  const Phase down{2 * pct_start_ * total - 2, initial};
  const Phase last{total - 1, initial / final_div_factor_};

  const auto rate_in = [&](double first_step, double start_rate, const Phase& phase) {
    const double steps = phase.last_step - first_step;
    // A phase of no steps is over at once; PyTorch would divide by 0.
    return anneal_(start_rate, phase.end_rate,
                   steps > 0 ? std::clamp((now - first_step) / steps, 0.0, 1.0) : 1.0);
  };
  if (now <= up.last_step)
    return rate_in(0, initial, up);
  if (!three_phase_)
    return rate_in(up.last_step, up.end_rate, last);
  if (now <= down.last_step)
    return rate_in(up.last_step, up.end_rate, down);
  return rate_in(down.last_step, down.end_rate, last);
}

InverseSquareRoot::InverseSquareRoot(const Config& config) : rise_(config.get<Duration>("rise")) {
  expect_some_time(config, "rise", rise_);
}

double InverseSquareRoot::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const auto rise = static_cast<double>(at_least_one_step(rise_, span));
  const auto update = static_cast<double>(span.within(step) + 1);
  return span.base_rate * std::min(update / rise, std::sqrt(rise / update));
}

Sequential::Sequential(const Config& config, const ComponentContext& context)
    : milestones_(durations(config, "milestones")) {
  TREADLE_EXPECTS(context.registry != nullptr,
                  "a component that holds others is made by a registry");
  for (const Config& slot : config.children("schedules")) {
    nlohmann::json parameters = slot.json();
    parameters.erase("use");
    schedules_.push_back(context.registry->make<LearningRateSchedule>(
        slot.get<std::string>("use"),
        Config(std::move(parameters), slot.pointer(), slot.places())));
  }
  if (milestones_.size() + 1 != schedules_.size()) {
    config.fail("milestones", "expected one for each schedule but the first, " +
                                  std::to_string(schedules_.size() - 1) + " for " +
                                  std::to_string(schedules_.size()) + " schedules, got " +
                                  std::to_string(milestones_.size()));
  }
  expect_rising(config, "milestones", milestones_);
}

double Sequential::do_rate_at(std::int64_t step, const ScheduleSpan& span) const {
  const std::int64_t now = span.within(step);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < milestones_.size(); ++i) {
    const std::int64_t end = span.steps(milestones_[i]);
    if (now < end) {
      ScheduleSpan own = span;
      own.total_steps = end - start;
      return schedules_[i]->rate_at(now - start, own);
    }
    start = std::max(start, end);
  }
  ScheduleSpan rest = span;
  if (span.total_steps)
    rest.total_steps = std::max<std::int64_t>(1, *span.total_steps - start);
  return schedules_.back()->rate_at(step - start, rest);
}

}  // namespace treadle::schedules
