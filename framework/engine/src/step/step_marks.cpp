#include "step_marks.h"

#include <algorithm>

namespace treadle::engine {

StepMarks::StepMarks(const DeviceBackend* backend, c10::Device device, Timeline* timeline)
    : backend_(timeline == nullptr || device.is_cpu() ? nullptr : backend),
      device_(device),
      timeline_(timeline) {}

StepMarks::Mark StepMarks::recorded() {
  Mark mark;
  if (spare_.empty()) {
    mark = backend_->mark(device_);
  } else {
    mark = std::move(spare_.back());
    spare_.pop_back();
  }
  if (mark != nullptr)
    mark->record();
  return mark;
}

void StepMarks::begin_step() {
  if (backend_ == nullptr)
    return;
  if (begun_ == nullptr) {
    begun_ = recorded();
    begun_at_ = Timeline::Clock::now();
  }
  if (begun_ != nullptr)
    steps_.emplace_back(recorded(), nullptr);
}

void StepMarks::end_step() {
  if (!steps_.empty())
    steps_.back().second = recorded();
}

void StepMarks::read() {
  while (!steps_.empty() && steps_.front().second != nullptr &&
         steps_.front().second->has_passed()) {
    auto& [begin, end] = steps_.front();
    const double seconds = end->seconds_since(*begin);
    last_end_ = end->seconds_since(*begun_);
    busy_seconds_ += seconds;
    if (timeline_->keeps_events()) {
      const std::chrono::duration<double> start(std::max(0.0, last_end_ - seconds));
      timeline_->add_device_span(
          begun_at_ + std::chrono::duration_cast<Timeline::Clock::duration>(start), seconds);
    }
    spare_.push_back(std::move(begin));
    spare_.push_back(std::move(end));
    steps_.pop_front();
  }
}

void StepMarks::end_epoch() {
  if (backend_ == nullptr || begun_ == nullptr)
    return;
  read();
  timeline_->device_use().add_epoch(busy_seconds_, std::max(0.0, last_end_ - busy_seconds_));
  if (timeline_->keeps_events())
    timeline_->sample_device(backend_->memory(device_).in_use);
  steps_.clear();
  spare_.push_back(std::move(begun_));
  busy_seconds_ = last_end_ = 0;
}

}  // namespace treadle::engine
