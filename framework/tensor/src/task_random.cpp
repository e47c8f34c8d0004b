#include <treadle/tensor/task_random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <treadle/base/error.h>
#include <treadle/tensor/philox.h>
#include <treadle/tensor/torch_versions.h>

namespace treadle {
namespace {

/// The seed of a scope, and its generators once something was drawn: one for the CPU, and one for
/// the other device that a task may compute on.
struct Stream {
  const at::Generator& generator() {
    if (!made.defined()) {
      expect_no_recording();
      made = make_generator(seed);
    }
    return made;
  }

  const at::Generator& generator(c10::Device device) {
    if (!torch_versions::has_generators(device)) {
      if (!device.is_cpu())
        note_draw(draws_for_device);
      return generator();
    }
    if (!made_for_device.defined() || made_for != device) {
      expect_no_recording();
      made_for_device = torch_versions::make_generator_for(device, seed);
      made_for = device;
    }
    return made_for_device;
  }

  /// A device without generators draws from the host's, and a replay draws what the device drew
  /// alone: seeds that the host draws in between would be missing.
  void note_draw(bool& kind) {
    kind = true;
    if (draws_for_device && draws_seeds)
      expect_no_recording();
  }

  void expect_no_recording() const {
    if (is_recorded) {
      throw TrainingError(
          "it draws random numbers from a seed that the host draws, as recomputed layers, branches "
          "and dropout on a device without generators do");
    }
  }

  std::uint64_t seed;
  std::uint64_t chosen = 0;  // elements so far, each a function of its place
  bool is_recorded = false;  // by a device, with this seed
  at::Generator made = {};
  at::Generator made_for_device = {};
  c10::Device made_for = c10::kCPU;
  bool draws_for_device = false;  // numbers of another device, from the host's generator
  bool draws_seeds = false;       // from it too
};

// Of the innermost scope on this thread. Set and restored by TaskRandom alone.
thread_local Stream* task_stream = nullptr;

std::optional<std::size_t> argument_of(const c10::FunctionSchema& schema, std::string_view name) {
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == name)
      return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> generator_argument(const c10::FunctionSchema& schema) {
  return argument_of(schema, "generator");
}

/// Where an operator computes, given its arguments: where its first tensor is; without a tensor on
/// the device that it is to make one on.
c10::Device device_of_call(const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                           std::size_t first) {
  for (std::size_t i = first; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined())
      return stack[i].toTensor().device();
  }
  const auto device = argument_of(schema, "device");
  return device && stack[first + *device].isDevice() ? stack[first + *device].toDevice()
                                                     : c10::Device(c10::kCPU);
}

/// Gives the operator the task's generator when it was given none, and carries on.
void draw_from_task(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto argument = generator_argument(op.schema());
  const std::size_t first = stack->size() - op.schema().arguments().size();
  c10::IValue& given = (*stack)[first + *argument];
  if (given.isNone() && task_stream != nullptr)
    given = c10::IValue(task_stream->generator(device_of_call(op.schema(), *stack, first)));
  torch_versions::continue_below(torch_versions::kTaskKey, op, keys, stack);
}

/// 1 with the given probability, else 0.
template <typename T>
void choose(T* values, std::int64_t count, double probability, const Philox& philox,
            std::uint64_t place) {
  constexpr std::int64_t kWords = 1024;
  // So many of the 2^32 words are chosen, from 0 on.
  const auto share = static_cast<std::uint64_t>(std::llround(std::ldexp(probability, 32)));
  if (share == 0) {
    std::fill_n(values, count, static_cast<T>(0));
    return;
  }
  const auto last = static_cast<std::uint32_t>(share - 1);
  std::array<std::uint32_t, kWords + 4> words{};
  std::array<T, kWords> chosen;
  for (std::int64_t done = 0; done < count; done += kWords) {
    const std::int64_t open = std::min(kWords, count - done);
    const std::size_t skipped = place % 4;
    const auto needed = (skipped + static_cast<std::size_t>(open) + 3) / 4 * 4;
    philox.fill(place / 4, std::span(words).first(needed));
    for (std::size_t i = 0; i < kWords; ++i)  // of a known number, by vectors
      chosen[i] = words[i + skipped] <= last ? static_cast<T>(1) : static_cast<T>(0);
    place += static_cast<std::uint64_t>(open);
    std::copy_n(chosen.data(), open, values + done);
  }
}

/// A plain tensor of the CPU, or of a device that draws from the host. The recording of a forward
/// must see libtorch draw.
bool is_place_drawn(const at::Tensor& self) {
  return task_stream != nullptr && !torch_versions::has_generators(self.device()) &&
         self.has_storage() && self.is_non_overlapping_and_dense() && !self.requires_grad() &&
         (c10::isFloatingType(self.scalar_type()) || self.scalar_type() == at::kBool) &&
         !c10::impl::tls_is_dispatch_key_included(torch_versions::kRecordingKey);
}

void choose_by_place(const at::Tensor& self, double probability) {
  task_stream->expect_no_recording();
  const Philox philox{task_stream->seed};
  AT_DISPATCH_ALL_TYPES_AND3(
      at::kHalf, at::kBFloat16, at::kBool, self.scalar_type(), "bernoulli_", [&] {
        choose(self.data_ptr<scalar_t>(), self.numel(), probability, philox, task_stream->chosen);
      });
  task_stream->chosen += static_cast<std::uint64_t>(self.numel());
}

/// bernoulli_() with one probability for all elements.
void choose_by_task(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const std::size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor self = (*stack)[first].toTensor();
  const double probability = (*stack)[first + 1].toDouble();
  // libtorch has the message about a probability that is none.
  if (!(*stack)[first + 2].isNone() || !is_place_drawn(self) ||
      !(probability >= 0 && probability <= 1))
    return draw_from_task(op, keys, stack);
  if (self.is_cpu()) {
    choose_by_place(self, probability);
    // As libtorch's own kernel for that key does; a plan writes without it.
    if (!c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView))
      self.unsafeGetTensorImpl()->bump_version();
  } else {
    const at::Tensor chosen = at::empty(self.sizes(), self.options().device(c10::kCPU));
    choose_by_place(chosen, probability);
    self.copy_(chosen);
  }
  stack->resize(first);
  stack->emplace_back(self);
}

/// Dropout as accelerators have it: in one kernel, which takes no generator. Off the CPU it is made
/// of operators that take one.
void drop_out_by_task(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
  const std::size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor input = (*stack)[first].toTensor();
  const bool trains = (*stack)[first + 2].isNone() || (*stack)[first + 2].toBool();
  if (input.is_cpu() || task_stream == nullptr || !trains)
    return torch_versions::continue_below(torch_versions::kTaskKey, op, keys, stack);
  const double kept = 1 - (*stack)[first + 1].toDouble();
  const at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool))
                              .bernoulli_(kept, task_stream->generator(input.device()));
  stack->resize(first);
  stack->emplace_back(input * mask * (kept > 0 ? 1 / kept : 0));
  stack->emplace_back(mask);
}

/// Every other operator passes the key as if it were not there.
bool install_kernels() {
  using torch::CppFunction;
  // Registrations end with the Library object; this one lasts as long as the process.
  static torch::Library everything(torch::Library::IMPL, "_", torch_versions::kTaskKey, __FILE__,
                                   __LINE__);
  everything.fallback(CppFunction::makeFallthrough());
  static torch::Library aten(torch::Library::IMPL, "aten", torch_versions::kTaskKey, __FILE__,
                             __LINE__);
  for (const c10::OperatorName& name : torch_versions::all_operator_names()) {
    if (name.name.rfind("aten::", 0) != 0)
      continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !generator_argument(op->schema()))
      continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    const bool chooses = name.name == "aten::bernoulli_" && name.overload_name == "float";
    aten.impl((name.name + overload).c_str(),
              chooses ? CppFunction::makeFromBoxedFunction<&choose_by_task>()
                      : CppFunction::makeFromBoxedFunction<&draw_from_task>());
  }
  aten.impl("native_dropout", CppFunction::makeFromBoxedFunction<&drop_out_by_task>());
  return true;
}

void expect_kernels() {
  static const bool installed = install_kernels();
  static_cast<void>(installed);
}

}  // namespace

TaskGenerators::TaskGenerators(c10::Device device) : host_(make_generator(0)), where_(device) {
  if (!device.is_cpu() && torch_versions::has_generators(device))
    device_ = torch_versions::make_generator_for(device, 0);
}

void TaskGenerators::seed(std::uint64_t seed) {
  seed_ = seed;
  torch_versions::set_seed(host_, seed);
  if (device_.defined())
    torch_versions::set_seed(device_, seed);
}

struct TaskRandom::Scope {
  explicit Scope(Stream of_task)
      : stream(std::move(of_task)), previous(task_stream), key(torch_versions::kTaskKey) {
    task_stream = &stream;
  }
  ~Scope() { task_stream = previous; }

  Stream stream;
  Stream* previous;
  c10::impl::IncludeDispatchKeyGuard key;
};

TaskRandom::TaskRandom(std::uint64_t seed) {
  expect_kernels();
  scope_ =
      std::make_unique<Scope>(Stream{seed, 0, task_stream != nullptr && task_stream->is_recorded});
}

TaskRandom::TaskRandom(const TaskGenerators& generators) {
  expect_kernels();
  scope_ = std::make_unique<Scope>(Stream{generators.seed_, 0, generators.is_recorded_,
                                          generators.host_, generators.device_, generators.where_});
}

TaskRandom::~TaskRandom() = default;

const at::Generator& TaskRandom::generator() const {
  return scope_->stream.generator();
}

std::uint64_t draw_from_task() {
  if (task_stream != nullptr)
    task_stream->note_draw(task_stream->draws_seeds);
  return torch_versions::draw_64_bits(
      task_stream != nullptr ? task_stream->generator() : torch_versions::default_cpu_generator());
}

at::Generator make_generator(std::uint64_t seed) {
  return torch_versions::make_cpu_generator(seed);
}

}  // namespace treadle
