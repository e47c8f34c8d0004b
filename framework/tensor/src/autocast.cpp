#include <treadle/tensor/autocast.h>

#include <algorithm>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <treadle/base/error.h>
#include <treadle/tensor/torch_versions.h>

namespace treadle {
namespace {

void set(const Autocast& autocast) {
  for (std::size_t i = 0; i < Autocast::kDevices.size(); ++i)
    torch_versions::set_autocast_dtype(Autocast::kDevices[i], autocast.dtypes[i]);
}

at::Tensor in_float32(const at::Tensor& tensor) {
  if (!tensor.defined())
    return tensor;
  const c10::ScalarType dtype = tensor.scalar_type();
  const bool is_narrow = dtype == c10::ScalarType::BFloat16 || dtype == c10::ScalarType::Half;
  return is_narrow ? tensor.to(c10::ScalarType::Float) : tensor;
}

c10::IValue in_float32(const c10::IValue& value) {
  if (value.isTensor())
    return c10::IValue(in_float32(value.toTensor()));
  if (!value.isTensorList())
    return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector())
    list.push_back(in_float32(tensor));
  return c10::IValue(std::move(list));
}

/// As libtorch casts for the operators that it lists itself: what it is made of is not cast again.
void compute_in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const std::size_t first = stack->size() - op.schema().arguments().size();
  for (std::size_t i = first; i < stack->size(); ++i)
    (*stack)[i] = in_float32((*stack)[i]);
  op.callBoxed(stack);
}

/// In float32 where the thread autocasts to float16, else as libtorch does it.
void compute_half_in_float32(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                             torch::jit::Stack* stack) {
  if (torch_versions::autocast_dtype(c10::DeviceType::CPU) == c10::ScalarType::Half)
    return compute_in_float32(op, stack);
  torch_versions::continue_below(c10::DispatchKey::AutocastCPU, op, keys, stack);
}

/// For all threads, and only seen by one that autocasts.
bool install_missing_casts() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastCPU,
                                __FILE__, __LINE__);
  for (const char* name : torch_versions::operators_for_autocast_to_float32())
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&compute_in_float32>());
  for (const char* name : torch_versions::operators_without_half_training())
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&compute_half_in_float32>());
  return true;
}

}  // namespace

bool Autocast::exists_on(c10::DeviceType device) {
  return std::find(kDevices.begin(), kDevices.end(), device) != kDevices.end();
}

Autocast Autocast::on(c10::DeviceType device, c10::ScalarType dtype) {
  const auto* const found = std::find(kDevices.begin(), kDevices.end(), device);
  TREADLE_EXPECTS(found != kDevices.end(), "libtorch has no autocast for this device");
  Autocast autocast;
  autocast.dtypes[static_cast<std::size_t>(found - kDevices.begin())] = dtype;
  return autocast;
}

Autocast Autocast::of_this_thread() {
  Autocast autocast;
  for (std::size_t i = 0; i < kDevices.size(); ++i)
    autocast.dtypes[i] = torch_versions::autocast_dtype(kDevices[i]);
  return autocast;
}

bool Autocast::is_on() const {
  return std::any_of(dtypes.begin(), dtypes.end(),
                     [](const auto& dtype) { return dtype.has_value(); });
}

AutocastScope::AutocastScope(const Autocast& autocast)
    : before_(Autocast::of_this_thread()),
      kept_casts_(torch_versions::is_autocast_cache_enabled()) {
  if (autocast.is_on()) {
    static const bool is_installed = install_missing_casts();
    static_cast<void>(is_installed);
  }
  torch_versions::set_autocast_cache_enabled(false);
  set(autocast);
}

AutocastScope::~AutocastScope() {
  set(before_);
  torch_versions::set_autocast_cache_enabled(kept_casts_);
}

}  // namespace treadle
