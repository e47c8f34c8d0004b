#include <utility>

#include "run/graph_data.h"

namespace treadle::graph {

void DeviceTimes::begin(c10::Device device, std::size_t places) {
  if (backend_ == nullptr || device.is_cpu()) {
    marks_.clear();
    return;
  }
  if (marks_.size() != places || device != device_) {
    marks_.clear();
    device_ = device;
    if (backend_->mark(device) == nullptr)
      return;
    marks_.resize(places);
  }
  for (Marks& marks : marks_)
    marks.has_begun = marks.has_ended = false;
}

void DeviceTimes::begin_place(std::size_t place) {
  Marks& marks = marks_[place];
  if (std::exchange(marks.has_begun, true))
    return;
  if (marks.begin == nullptr) {
    marks.begin = backend_->mark(device_);
    marks.end = backend_->mark(device_);
  }
  marks.begin->record();
}

void DeviceTimes::end_place(std::size_t place) {
  marks_[place].end->record();
  marks_[place].has_ended = true;
}

void DeviceTimes::read(Times& times) const {
  backend_->synchronize(device_);
  const DeviceMark* first = nullptr;
  for (const Marks& marks : marks_) {
    if (marks.has_ended && (first == nullptr || marks.begin->seconds_since(*first) < 0))
      first = marks.begin.get();
  }
  const auto time_of = [&](const DeviceMark& mark) {
    // Not the clock's zero, which stands for a place that has not run.
    const std::chrono::duration<double> after(1 + mark.seconds_since(*first));
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(after));
  };
  for (std::size_t place = 0; place < marks_.size(); ++place) {
    if (marks_[place].has_ended)
      times[place] = {time_of(*marks_[place].begin), time_of(*marks_[place].end)};
  }
}

}  // namespace treadle::graph
