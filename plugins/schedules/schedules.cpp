#include "schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace treadle::schedules {
namespace {

void expect_some_time(const Config& config, std::string_view key, const Duration& duration) {
  if (duration.value <= 0)
    config.fail(key, "must be longer than 0, got \"" + duration.text() + "\"");
}

std::int64_t at_least_one_step(const Duration& duration, const ScheduleSpan& span) {
  return std::max<std::int64_t>(1, span.steps(duration));
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

}  // namespace treadle::schedules
