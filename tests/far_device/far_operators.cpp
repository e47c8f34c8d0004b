#include "far_operators.h"

#include <algorithm>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "far_memory.h"

namespace treadle::far {
namespace {

using c10::optional;

/// While the fallback moves operands: what it copies is the device's own work.
thread_local int inside_operator = 0;

struct InsideOperator {
  InsideOperator() { ++inside_operator; }
  ~InsideOperator() { --inside_operator; }
};

void count(std::atomic<std::int64_t>& what) {
  if (inside_operator == 0)
    ++what;
}

at::Tensor make(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    elements = sizes[i] == 0 ? 0 : elements + (elements == 0 ? 0 : (sizes[i] - 1) * strides[i]);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
    elements = 0;
  const auto type = c10::scalarTypeToTypeMeta(dtype);
  const std::size_t bytes = static_cast<std::size_t>(elements) * type.itemsize();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocator().allocate(bytes), &allocator(),
                                                       /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::XPU), type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

at::Tensor empty_memory_format(c10::IntArrayRef sizes, optional<at::ScalarType> dtype,
                               optional<at::Layout>, optional<at::Device>, optional<bool>,
                               optional<at::MemoryFormat>) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  return make(sizes, strides, dtype.value_or(at::kFloat));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         optional<at::ScalarType> dtype, optional<at::Layout>, optional<at::Device>,
                         optional<bool>) {
  return make(sizes, strides, dtype.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool) {
  if (!source.is_cpu() && target.is_cpu())
    count(traffic().to_host);
  if (source.is_cpu() && !target.is_cpu())
    count(traffic().to_device);
  const Opened from(source);
  const Opened to(target);
  at::Tensor into = to.host();
  into.copy_(from.host());
  return target;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  copy_from(source.sizes() == self.sizes() ? source : source.expand_as(self), self, non_blocking);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (target.sizes() != source.sizes()) {
    const at::Tensor resized = at::empty(source.sizes(), target.options());
    at::Tensor(target).set_(resized.storage(), 0, resized.sizes(), resized.strides());
  }
  return copy_from(source, target, false);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset,
                        c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor strided(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   optional<std::int64_t> offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(self.storage()),
                                                             self.key_set(), self.dtype());
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(offset.value_or(self.storage_offset()));
  impl->set_sizes_and_strides(sizes, strides);
  return view;
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef requested) {
  const auto sizes = at::infer_size_dv(requested, self.numel());
  const auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(strides.has_value(),
              "view() needs a tensor whose memory is laid out as the new shape; use reshape()");
  return strided(self, sizes, *strides, self.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return strided(self, sizes, strides, self.storage_offset());
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dimension, std::int64_t size,
                  std::int64_t step) {
  const std::int64_t at = dimension < 0 ? dimension + self.dim() : dimension;
  std::vector<std::int64_t> sizes = self.sizes().vec();
  std::vector<std::int64_t> strides = self.strides().vec();
  const auto place = static_cast<std::size_t>(at);
  strides.push_back(strides[place]);
  sizes.push_back(size);
  sizes[place] = (sizes[place] - size) / step + 1;
  strides[place] *= step;
  return strided(self, sizes, strides, self.storage_offset());
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef sizes,
                         optional<at::MemoryFormat>) {
  if (self.sizes() == sizes)
    return self;
  const at::Tensor resized = at::empty(sizes, self.options());
  at::Tensor(self).set_(resized.storage(), 0, resized.sizes(), resized.strides());
  return self;
}

at::Scalar item(const at::Tensor& self) {
  count(traffic().waits);
  return Opened(self).host().item();
}

/// Every other operator: on copies of its operands on the host.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const InsideOperator inside;
  at::native::cpu_fallback(op, stack);
}

/// One device with one stream, on which everything has happened already.
class FarGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return {kType, 0}; }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

}  // namespace

Traffic& traffic() {
  static Traffic counted;
  return counted;
}

void install() {
  static const FarGuard guard;
  static const bool installed = [] {
    static c10::impl::DeviceGuardImplRegistrar registered(kType, &guard);
    using torch::CppFunction;
    static torch::Library everything(torch::Library::IMPL, "_", c10::DispatchKey::XPU, __FILE__,
                                     __LINE__);
    everything.fallback(CppFunction::makeFromBoxedFunction<&fall_back>());
    static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::XPU, __FILE__,
                               __LINE__);
    aten.impl("empty.memory_format", &empty_memory_format);
    aten.impl("empty_strided", &empty_strided);
    aten.impl("_copy_from", &copy_from);
    aten.impl("_copy_from_and_resize", &copy_from_and_resize);
    aten.impl("copy_", &copy);
    aten.impl("set_.source_Storage_storage_offset", &set_storage);
    aten.impl("as_strided", &strided);
    aten.impl("view", &view);
    aten.impl("_reshape_alias", &reshape_alias);
    aten.impl("unfold", &unfold);
    aten.impl("resize_", &resize);
    aten.impl("_local_scalar_dense", &item);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace treadle::far
