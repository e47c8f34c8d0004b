#include <treadle/core/devices/device_constant.h>

#include <mutex>
#include <utility>
#include <vector>

namespace treadle {

struct DeviceConstant::Copies {
  std::mutex mutex;
  std::vector<at::Tensor> all;
};

DeviceConstant::DeviceConstant(at::Tensor numbers)
    : numbers_(std::move(numbers)), copies_(std::make_shared<Copies>()) {}

DeviceConstant::~DeviceConstant() = default;

at::Tensor DeviceConstant::with(const at::TensorOptions& options) const {
  if (!is_defined())
    return {};
  const c10::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  const std::lock_guard lock(copies_->mutex);
  for (const at::Tensor& copy : copies_->all) {
    if (copy.scalar_type() == dtype && copy.device() == options.device())
      return copy;
  }
  copies_->all.push_back(numbers_.to(options.device(), dtype));
  return copies_->all.back();
}

}  // namespace treadle
