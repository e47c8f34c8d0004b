#include <treadle/engine/device_traffic.h>

namespace treadle::engine {

Batch sent(const Batch& batch, c10::Device device, Timeline* timeline) {
  Batch there = batch.to(device);
  if (timeline == nullptr || device.is_cpu())
    return there;
  std::int64_t copies = 0;
  std::int64_t bytes = 0;
  static_cast<void>(batch.with_each([&](const at::Tensor& tensor) {
    if (tensor.device() != device) {
      ++copies;
      bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    return tensor;
  }));
  timeline->device_use().count_sent(copies, bytes);
  return there;
}

void count_fetched(const StateDict& state, Timeline* timeline) {
  if (timeline == nullptr)
    return;
  for (const auto& [name, tensor] : state.tensors()) {
    if (!tensor.is_cpu())
      timeline->device_use().count_fetched(1, static_cast<std::int64_t>(tensor.nbytes()));
  }
  for (const auto& [name, part] : state.parts())
    count_fetched(part, timeline);
}

void count_sent(const StateDict& state, c10::Device device, Timeline* timeline) {
  if (timeline == nullptr || device.is_cpu())
    return;
  for (const auto& [name, tensor] : state.tensors())
    timeline->device_use().count_sent(1, static_cast<std::int64_t>(tensor.nbytes()));
  for (const auto& [name, part] : state.parts())
    count_sent(part, device, timeline);
}

at::Tensor Waiting::fetched(const at::Tensor& tensor) const {
  if (tensor.is_cpu())
    return tensor;
  if (use_ != nullptr)
    use_->count_fetched(1, static_cast<std::int64_t>(tensor.nbytes()));
  return tensor.cpu();
}

}  // namespace treadle::engine
