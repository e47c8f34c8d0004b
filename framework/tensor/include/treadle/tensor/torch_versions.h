#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/library.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR < 2
#include <ATen/ops/prelu_backward.h>
#else
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_prelu_kernel_backward.h>
#endif

/// Everything that differs between libtorch 1.13, 2.6 and 2.14, and every use of its internals, in
/// one place. No other header of ours may test a libtorch version.
namespace treadle::torch_versions {

/// A dispatch key above autograd that libtorch itself leaves alone in all three versions.
inline constexpr c10::DispatchKey kTaskKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// One below autograd and above every backend, for others' tensors that hold no numbers, which we
/// have none of.
inline constexpr c10::DispatchKey kRecordingKey = c10::DispatchKey::Fake;

/// A generator for the CPU, seeded.
inline at::Generator make_cpu_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

/// Whether libtorch has random generators for a device. 1.13 has them for CUDA and MPS only;
/// operators of any other device draw from the CPU's.
inline bool has_generators(c10::Device device) {
#if TORCH_VERSION_MAJOR < 2
  return device.is_cuda() || device.is_mps();
#else
  return !device.is_cpu();
#endif
}

inline void set_seed(at::Generator generator, std::uint64_t seed) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

/// A generator for a device that has_generators(), seeded.
inline at::Generator make_generator_for(c10::Device device, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  set_seed(generator, seed);
  return generator;
}

/// libtorch's own generator, which the whole process shares.
inline const at::Generator& default_cpu_generator() {
  return at::detail::getDefaultCPUGenerator();
}

/// The next number of a CPU generator.
inline std::uint64_t draw_64_bits(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

/// Every operator known to the dispatcher now.
inline std::vector<c10::OperatorName> all_operator_names() {
  return c10::Dispatcher::singleton().getAllOpNames();
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#define TREADLE_AUTOCAST_BY_DEVICE 1
#endif

/// Operators whose kernels for a CPU take float32 or float64 only, or the same dtype for
/// activations and parameters, and which autocast does not know: it is to compute them in
/// float32. 2.x has the kernels.
inline std::vector<const char*> operators_for_autocast_to_float32() {
#if TORCH_VERSION_MAJOR < 2
  return {"layer_norm", "group_norm", "mish", "hardtanh", "hardshrink", "softshrink"};
#else
  return {};
#endif
}

/// Operators that libtorch hands to oneDNN on a CPU, which has no training for them in float16.
inline std::vector<const char*> operators_without_half_training() {
#if TORCH_VERSION_MAJOR >= 2
  return {"lstm.input", "lstm.data"};
#else
  return {};
#endif
}

/// Whether oneDNN finds the gradients of transposed convolutions in bfloat16: not that of 1.13.
inline constexpr bool kHasNarrowTransposedConvolutions = TORCH_VERSION_MAJOR >= 2;

/// Whether libtorch has the operators of a model in float16 on a CPU: not in 1.13.
inline constexpr bool kHasHalfOnCpu = TORCH_VERSION_MAJOR >= 2;

/// float32 as libtorch converts it to its own float8_e4m3fn, or float8_e5m2: the bits, uint8.
/// Nothing: this libtorch has no float8.
inline std::optional<at::Tensor> float8_codes_by_libtorch(const at::Tensor& values, bool e5m2) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
  return values.to(e5m2 ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn).view(at::kByte);
#else
  static_cast<void>(values);
  static_cast<void>(e5m2);
  return std::nullopt;
#endif
}

/// The dtype that this thread autocasts to on a kind of device; nothing: it does not.
inline std::optional<c10::ScalarType> autocast_dtype(c10::DeviceType device) {
#ifdef TREADLE_AUTOCAST_BY_DEVICE
  if (!at::autocast::is_autocast_enabled(device))
    return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
#else
  if (device == at::kCPU ? !at::autocast::is_cpu_enabled() : !at::autocast::is_enabled())
    return std::nullopt;
  return device == at::kCPU ? at::autocast::get_autocast_cpu_dtype()
                            : at::autocast::get_autocast_gpu_dtype();
#endif
}

/// From now on, of this thread.
inline void set_autocast_dtype(c10::DeviceType device, std::optional<c10::ScalarType> dtype) {
#ifdef TREADLE_AUTOCAST_BY_DEVICE
  at::autocast::set_autocast_enabled(device, dtype.has_value());
  if (dtype)
    at::autocast::set_autocast_dtype(device, *dtype);
#else
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(dtype.has_value());
    if (dtype)
      at::autocast::set_autocast_cpu_dtype(*dtype);
  } else {
    at::autocast::set_enabled(dtype.has_value());
    if (dtype)
      at::autocast::set_autocast_gpu_dtype(*dtype);
  }
#endif
}

/// Whether casts of parameters are kept for this thread's next operators.
inline bool is_autocast_cache_enabled() {
  return at::autocast::is_autocast_cache_enabled();
}
inline void set_autocast_cache_enabled(bool enabled) {
  at::autocast::set_autocast_cache_enabled(enabled);
}

/// A node of libtorch's graph of gradients, held as libtorch holds it.
using HeldNode = decltype(torch::autograd::Edge::function);

/// A new one: counted from outside up to 2.6, where libtorch deletes chains of nodes without
/// recursion by a function of its own, and in the node itself later.
template <typename Node, typename... Args>
HeldNode make_node(Args&&... args) {
  if constexpr (std::is_same_v<HeldNode, std::shared_ptr<torch::autograd::Node>>) {
    return HeldNode(new Node(std::forward<Args>(args)...), [](auto* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<Node>(std::forward<Args>(args)...);
  }
}

/// Continues a boxed call below `key`.
inline void continue_below(c10::DispatchKey key, const c10::OperatorHandle& op,
                           c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key), stack);
}

/// What autograd gives back through at::prelu(x, weight): to x, and to the weight.
inline std::pair<at::Tensor, at::Tensor> prelu_gradients(const at::Tensor& gradient,
                                                         const at::Tensor& x,
                                                         const at::Tensor& weight) {
#if TORCH_VERSION_MAJOR < 2
  auto [of_x, of_weight] = at::prelu_backward(gradient, x, weight);
  return {std::move(of_x), std::move(of_weight)};
#else
  at::Tensor beside = weight;
  if (x.dim() != weight.dim()) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    if (x.dim() > 1)
      sizes[1] = weight.numel();
    beside = weight.reshape(sizes);
  }
  auto [of_x, of_each] = at::_prelu_kernel_backward(gradient, x, beside);
  return {std::move(of_x), at::sum_to(std::move(of_each), beside.sizes()).reshape(weight.sizes())};
#endif
}

}  // namespace treadle::torch_versions
