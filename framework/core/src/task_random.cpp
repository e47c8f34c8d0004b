#include <treadle/core/task_random.h>

#include <optional>

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <treadle/core/torch_versions.h>

namespace treadle {
namespace {

// The generator of the innermost scope on this thread. Set and restored by TaskRandom alone.
thread_local const at::Generator* current_generator = nullptr;

std::optional<std::size_t> generator_argument(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "generator") return i;
  }
  return std::nullopt;
}

/// Gives the operator the task's generator when it was given none, and carries on.
void draw_from_task(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const auto argument = generator_argument(op.schema());
  const std::size_t first = stack->size() - op.schema().arguments().size();
  c10::IValue& given = (*stack)[first + *argument];
  if (given.isNone() && current_generator != nullptr) given = c10::IValue(*current_generator);
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
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op || !generator_argument(op->schema())) continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    aten.impl((name.name + overload).c_str(),
              CppFunction::makeFromBoxedFunction<&draw_from_task>());
  }
  return true;
}

}  // namespace

struct TaskRandom::Scope {
  explicit Scope(const at::Generator* generator)
      : previous(current_generator), key(torch_versions::kTaskKey) {
    current_generator = generator;
  }
  ~Scope() { current_generator = previous; }

  const at::Generator* previous;
  c10::impl::IncludeDispatchKeyGuard key;
};

TaskRandom::TaskRandom(std::uint64_t seed) : generator_(make_generator(seed)) {
  static const bool installed = install_kernels();
  static_cast<void>(installed);
  scope_ = std::make_unique<Scope>(&generator_);
}

TaskRandom::~TaskRandom() = default;

at::Generator make_generator(std::uint64_t seed) {
  return torch_versions::make_cpu_generator(seed);
}

}  // namespace treadle
