#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/history/timeline.h>

/// Copies between the host and a device, counted in the run's timeline. On a CPU nothing
/// crosses and nothing is counted.
namespace treadle::engine {

/// Batch::to(), with its copies counted. A null timeline is for work that is not counted.
Batch sent(const Batch& batch, c10::Device device, Timeline* timeline);

/// Counts the tensors of `state` that are on a device, as copies to the host. Expects a span of its
/// own around the copying: see Waiting.
void count_fetched(const StateDict& state, Timeline* timeline);

/// Counts the tensors of `state`, which is on the host, as copies to `device`.
void count_sent(const StateDict& state, c10::Device device, Timeline* timeline);

/// Work for which the host waits for the device of some tensors: reading `numbers` of them one by
/// one, or copying them.
class Waiting {
 public:
  Waiting(Timeline* timeline, c10::Device device, std::int64_t numbers = 0)
      : use_(timeline == nullptr || device.is_cpu() ? nullptr : &timeline->device_use()),
        span_(use_ == nullptr ? nullptr : timeline, Phase::kWaiting) {
    if (use_ != nullptr)
      use_->count_waits(numbers);
  }

  /// On the host; the tensor itself where it is there already.
  at::Tensor fetched(const at::Tensor& tensor) const;

 private:
  DeviceUse* const use_;  // null: nothing is counted
  const Timeline::Span span_;
};

}  // namespace treadle::engine
