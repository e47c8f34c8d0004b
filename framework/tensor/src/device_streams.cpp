#include <treadle/tensor/device_streams.h>

#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

namespace treadle {
namespace {

using c10::impl::VirtualGuardImpl;

bool has_streams(const c10::Stream& stream) {
  return stream.device_type() != c10::kCPU;
}

}  // namespace

c10::Device device_of(const torch::nn::Module& module) {
  const std::vector<at::Tensor> parameters = module.parameters();
  return parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
}

c10::Stream current_stream(c10::Device device) {
  return VirtualGuardImpl(device.type()).getStream(device);
}

c10::Stream another_stream(c10::Device device) {
  if (device.is_cpu())
    return current_stream(device);
  return VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

StreamScope::StreamScope(const c10::Stream& stream) {
  if (has_streams(stream))
    guard_.emplace(stream);
}

void StreamEvent::record(const c10::Stream& stream) {
  if (!has_streams(stream))
    return;
  if (!event_)
    event_.emplace(stream.device_type());
  event_->record(stream);
}

void StreamEvent::hold_back(const c10::Stream& stream) {
  if (event_ && has_streams(stream))
    event_->block(stream);
}

bool StreamEvent::has_passed() const {
  return !event_ || event_->query();
}

void use_on(const c10::Stream& stream, const at::Tensor& tensor) {
  if (has_streams(stream) && tensor.defined())
    VirtualGuardImpl(stream.device_type())
        .recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

}  // namespace treadle
