#include <treadle/tensor/task_random.h>

#include <optional>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <treadle/base/error.h>
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
          "it draws random numbers from a seed that the host draws, as recomputed layers and "
          "branches do");
    }
  }

  std::uint64_t seed;
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
    aten.impl((name.name + overload).c_str(),
              CppFunction::makeFromBoxedFunction<&draw_from_task>());
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
      std::make_unique<Scope>(Stream{seed, task_stream != nullptr && task_stream->is_recorded});
}

TaskRandom::TaskRandom(const TaskGenerators& generators) {
  expect_kernels();
  scope_ = std::make_unique<Scope>(
      Stream{0, generators.is_recorded_, generators.host_, generators.device_, generators.where_});
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
