#include <treadle/tensor/task_random.h>

#include <optional>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <treadle/tensor/torch_versions.h>

namespace treadle {
namespace {

/// The seed of a scope, and its generator once something was drawn.
struct Stream {
  const at::Generator& generator() {
    if (!made.defined())
      made = make_generator(seed);
    return made;
  }

  std::uint64_t seed;
  at::Generator made;
};

// Of the innermost scope on this thread. Set and restored by TaskRandom alone.
thread_local Stream* current_stream = nullptr;

std::optional<std::size_t> generator_argument(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "generator")
      return i;
  }
  return std::nullopt;
}

/// Gives the operator the task's generator when it was given none, and carries on.
void draw_from_task(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto argument = generator_argument(op.schema());
  const std::size_t first = stack->size() - op.schema().arguments().size();
  c10::IValue& given = (*stack)[first + *argument];
  if (given.isNone() && current_stream != nullptr)
    given = c10::IValue(current_stream->generator());
  torch_versions::continue_below(torch_versions::kTaskKey, op, keys, stack);
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
  return true;
}

}  // namespace

struct TaskRandom::Scope {
  explicit Scope(std::uint64_t seed)
      : stream{seed, {}}, previous(current_stream), key(torch_versions::kTaskKey) {
    current_stream = &stream;
  }
  ~Scope() { current_stream = previous; }

  Stream stream;
  Stream* previous;
  c10::impl::IncludeDispatchKeyGuard key;
};

TaskRandom::TaskRandom(std::uint64_t seed) {
  static const bool installed = install_kernels();
  static_cast<void>(installed);
  scope_ = std::make_unique<Scope>(seed);
}

TaskRandom::~TaskRandom() = default;

const at::Generator& TaskRandom::generator() const {
  return scope_->stream.generator();
}

std::uint64_t draw_from_task() {
  return torch_versions::draw_64_bits(current_stream != nullptr
                                          ? current_stream->generator()
                                          : torch_versions::default_cpu_generator());
}

at::Generator make_generator(std::uint64_t seed) {
  return torch_versions::make_cpu_generator(seed);
}

}  // namespace treadle
