#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/library.h>
#include <torch/version.h>

/// Everything that differs between libtorch 1.13, 2.6 and 2.14, and every use of its internals, in
/// one place. No other header of ours may test a libtorch version.
namespace treadle::torch_versions {

/// A dispatch key above autograd that libtorch itself leaves alone in all three versions.
inline constexpr c10::DispatchKey kTaskKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// A generator for the CPU, seeded.
inline at::Generator make_cpu_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

/// Whether a device has random generators of its own. libtorch 1.13 knows those of CUDA and MPS
/// alone; operators of any other device draw from the CPU's.
inline bool has_generators(c10::Device device) {
#if TORCH_VERSION_MAJOR < 2
  return device.is_cuda() || device.is_mps();
#else
  return !device.is_cpu();
#endif
}

/// A generator for a device that has_generators(), seeded.
inline at::Generator make_generator_for(c10::Device device, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
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

/// Whether this thread computes in other dtypes than those requested.
inline bool is_autocast_enabled() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::is_autocast_enabled(at::kCPU) ||
         at::autocast::is_autocast_enabled(at::kCUDA);
#else
  return at::autocast::is_cpu_enabled() || at::autocast::is_enabled();
#endif
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

}  // namespace treadle::torch_versions
