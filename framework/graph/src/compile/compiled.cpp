#include "compile/compiled.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>

#include <treadle/base/error.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/plan/passes.h>
#include <treadle/plan/plan.h>
#include <treadle/plan/run.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/torch_versions.h>

#include "compile/choice.h"
#include "compile/lowering.h"
#include "compile/run_plan.h"
#include "forward/failure.h"
#include "run/graph_result.h"
#include "run/run_graph.h"
#include "run/spare_state.h"

// A forward from a plan: key_of() -> PlanCache::find() -> Lease::take() -> run_list() ->
// hand_out(), or make_plan() in place of the middle three. Its backward: PlanNode::apply(), then
// give_back().
//
// Ownership. The executor owns the cache, the cache shares programs with runs in flight. A Lease
// holds a program and the run that works on it. Until the backward is done or its autograd graph is
// freed, PlanNode shares the Lease: a run's memory holds what the backward reads, hence one
// backward per forward. Then the run returns to the program's pool.
//
// Memory. Idle runs of all plans of a graph are freed before a new one is allocated: batches of
// another size, and evaluation after training, need that memory more.
//
// Threads. Several forwards may run at once; the cache and each pool have a mutex. Two threads may
// make the same plan, and the later one stays in the cache. A backward runs on autograd's thread
// for the device, which on a CPU is the caller's.
//
// A backward adds gradients of parameters straight into grad(), without autograd nodes for them,
// unless torch::autograd::grad() asks for some: then they are results.

namespace treadle::graph {
namespace {

using torch::autograd::variable_list;

/// Whether it is present, on the CPU, and all zero bits: then gradients are summed in place. Others
/// are summed apart and added at the end, because sums start from zeros (rule 5 of
/// run/gradient_order.h).
bool is_zero(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.is_non_overlapping_and_dense())
    return false;
  const auto* bytes = static_cast<const char*>(tensor.data_ptr());
  const std::size_t count = tensor.nbytes();
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

PlanKey key_of(const Inputs& inputs, const GraphState::Data& state, const ForwardScope& scope,
               bool is_for_inference) {
  PlanKey key;
  key.records_gradients = at::GradMode::is_enabled();
  key.truncates_bptt = scope.truncates_bptt;
  key.keeps_tags = state.keeps_tags;
  key.is_for_inference = is_for_inference;
  const auto add = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) {
      key.given.emplace_back();
      return;
    }
    key.given.push_back(
        {TensorSpec::of(tensor), tensor.device(), key.records_gradients && tensor.requires_grad()});
  };
  for (const at::Tensor& input : inputs)
    add(input);
  for (const at::Tensor& value : state.states)
    add(value);
  return key;
}

/// A program and the run that works on it, returned to the program's pool by its last owner.
class Lease {
 public:
  Lease(std::shared_ptr<const plan::Program> program, std::unique_ptr<plan::Run> run)
      : program_(std::move(program)), run_(std::move(run)) {}

  static std::shared_ptr<Lease> take(const std::shared_ptr<const plan::Program>& program,
                                     PlanCache& plans) {
    std::unique_ptr<plan::Run> run;
    {
      const std::lock_guard lock(program->mutex);
      if (!program->spare.empty()) {
        run = std::move(program->spare.back());
        program->spare.pop_back();
      }
    }
    if (run == nullptr) {
      plans.drop_idle_memory();
      run = make_run(*program);
    }
    return std::make_shared<Lease>(program, std::move(run));
  }

  ~Lease() { give_back(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const plan::Program& program() const { return *program_; }
  const std::shared_ptr<const plan::Program>& shared_program() const { return program_; }
  plan::Run& run() { return *run_; }
  bool is_over() const { return run_ == nullptr; }

  void give_back() {
    if (run_ == nullptr)
      return;
    run_->leave_branches();
    for (const plan::SlotId slot : program_->passing)
      run_->slots[slot].reset();
    for (plan::Tape& tape : run_->tapes)
      tape = {};
    for (at::Tensor& sum : run_->sums)
      sum.reset();
    // The run that made the plan has no arena.
    if (program_->arena_bytes > 0 && !run_->arena.defined()) {
      run_.reset();
      return;
    }
    const std::lock_guard lock(program_->mutex);
    program_->spare.push_back(std::move(run_));
  }

 private:
  static std::unique_ptr<plan::Run> make_run(const plan::Program& program) {
    constexpr std::int64_t kAlignment = 256;
    auto run = std::make_unique<plan::Run>();
    run->slots.resize(program.slots.size());
    run->absent.resize(program.slots.size());
    run->tapes.resize(program.tapes);
    run->sums.resize(program.parameters.size());
    const auto bytes = static_cast<std::int64_t>(program.arena_bytes);
    const at::NoGradGuard no_gradients;
    run->arena =
        at::empty({bytes + kAlignment}, at::TensorOptions(at::kByte).device(program.device));
    const auto address = reinterpret_cast<std::uintptr_t>(run->arena.data_ptr());
    const auto begin = static_cast<std::int64_t>((kAlignment - address % kAlignment) % kAlignment);
    std::vector<bool> passes(program.slots.size());
    for (const plan::SlotId slot : program.passing)
      passes[slot] = true;
    for (plan::SlotId slot = 0; slot < program.slots.size(); ++slot) {
      const plan::Slot& planned = program.slots[slot];
      if (passes[slot])
        continue;
      std::int64_t elements = 1;
      for (const std::int64_t size : planned.spec.sizes)
        elements *= size;
      const auto width = static_cast<std::int64_t>(c10::elementSize(planned.spec.dtype));
      run->slots[slot] =
          run->arena.narrow(0, begin + static_cast<std::int64_t>(planned.offset), elements * width)
              .view(planned.spec.dtype)
              .view(planned.spec.sizes);
    }
    return run;
  }

  std::shared_ptr<const plan::Program> program_;
  std::unique_ptr<plan::Run> run_;
};

/// `stop`: of a forward; a backward has none.
void run_list(const plan::Program& program, const std::vector<plan::Instruction>& list,
              plan::Run& run, const std::stop_token* stop) {
  for (const plan::Instruction& instruction : list) {
    if (stop != nullptr && stop->stop_requested())
      throw Interrupted("stopped within a forward of the model");
    run_instruction(program, instruction, run);
    for (const plan::SlotId slot : instruction.done)
      run.slots[slot].reset();
    if (run.arena.defined())
      continue;
    for (const plan::SlotId slot : instruction.done_in_arena)
      run.slots[slot].reset();
  }
}

/// A run has its context during a forward only: it refers to what the caller of the forward owns.
class WithContext {
 public:
  WithContext(plan::Run& run, const plan::CallContext& context) : run_(run) {
    run.context = &context;
  }
  ~WithContext() { run_.context = nullptr; }
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;

 private:
  plan::Run& run_;
};

/// The whole plan as one autograd node. Gradients of parameters are added to their grad() directly,
/// without a node for each of them.
class PlanNode final : public torch::autograd::Node {
 public:
  explicit PlanNode(std::shared_ptr<Lease> lease) : lease_(std::move(lease)) {}

  std::string name() const override { return "CompiledPlan"; }

  variable_list apply(variable_list&& given) override {
    if (at::GradMode::is_enabled()) {
      throw TrainingError(
          "a compiled graph has no gradients of gradients; use \"execution\": \"dynamic\"");
    }
    const std::shared_ptr<Lease> lease = std::exchange(lease_, nullptr);
    if (lease == nullptr) {
      throw TrainingError(
          "backward through a compiled graph a second time: what it needs lies in memory that has "
          "been used again; run forward once more, or use \"execution\": \"dynamic\"");
    }
    try {
      return propagate(*lease, given);
    } catch (const Failure& failure) {
      failure.raise();
    }
  }

  void release_variables() override { lease_.reset(); }

 private:
  /// Takes the gradients out of `given`, so that their memory is freed after the last use.
  variable_list propagate(Lease& lease, variable_list& given) {
    const plan::Program& program = lease.program();
    plan::Run& run = lease.run();
    const bool only_some = torch::autograd::get_current_graph_task_exec_info() != nullptr &&
                           !torch::autograd::get_current_graph_task_exec_info()->empty();
    std::fill(run.absent.begin(), run.absent.end(), std::uint8_t{0});
    for (std::size_t i = 0, next = 0; i < program.output_gradients.size(); ++i) {
      const plan::SlotId slot = program.output_gradients[i];
      if (slot == plan::kNoSlot)
        continue;
      at::Tensor& gradient = given[next++];
      run.absent[slot] = gradient.defined() ? 0 : 1;
      run.slots[slot] = gradient.defined() ? gradient.contiguous() : at::Tensor();
      gradient.reset();
    }
    // Where somebody asks for them by torch::autograd::grad(), they are results and not added. A
    // sum begins with zeros, as libtorch's, whatever earlier backwards left: a last bit depends on
    // it.
    run.hands_sums_over = !only_some;
    run.arrived.assign(program.parameters.size(), 0);
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
      const at::Tensor& parameter = program.parameters[i];
      if (!only_some && parameter.requires_grad() && is_zero(parameter.grad()))
        run.sums[i] = parameter.grad();
    }
    run_list(program, program.backward, run, nullptr);
    // A parameter that nothing was added to has no gradient.
    for (std::size_t i = 0; i < program.parameters.size() && !only_some; ++i) {
      const at::Tensor& sum = run.sums[i];
      const at::Tensor& parameter = program.parameters[i];
      if (run.arrived[i] == 0 || !sum.defined() || sum.is_same(parameter.grad()))
        continue;
      if (parameter.grad().defined()) {
        parameter.grad().add_(sum);
      } else {
        parameter.mutable_grad() = sum;
      }
    }
    variable_list result;
    for (std::size_t i = 0; i < program.input_gradients.size(); ++i) {
      if (program.inputs[i] == plan::kNoSlot || !program.slots[program.inputs[i]].needs_gradient)
        continue;
      const plan::SlotId slot = program.input_gradients[i];
      result.push_back(is_absent(program, run, slot)
                           ? at::Tensor()
                           : own_memory(value_of(program, run, slot), run));
    }
    for (std::size_t i = 0; i < program.parameters.size(); ++i) {
      if (program.parameters[i].requires_grad())
        result.push_back(only_some && run.arrived[i] != 0 ? run.sums[i] : at::Tensor());
    }
    lease.give_back();
    return result;
  }

 public:
  /// A tensor that may outlive the run: a copy, if it lies in the arena.
  static at::Tensor own_memory(const at::Tensor& tensor, const plan::Run& run) {
    const bool is_arena = run.arena.defined() && tensor.storage().unsafeGetStorageImpl() ==
                                                     run.arena.storage().unsafeGetStorageImpl();
    return is_arena ? tensor.clone() : tensor;
  }

 private:
  std::shared_ptr<Lease> lease_;
};

/// The outputs of a run. Attaches them to a PlanNode if gradients are recorded; otherwise the run
/// is over.
std::vector<at::Tensor> hand_out(const std::shared_ptr<Lease>& lease,
                                 const std::vector<at::Tensor>& given) {
  const plan::Program& program = lease->program();
  plan::Run& run = lease->run();
  std::vector<at::Tensor> results;
  for (const plan::SlotId slot : program.outputs) {
    results.push_back(slot == plan::kNoSlot
                          ? at::Tensor()
                          : PlanNode::own_memory(value_of(program, run, slot), run).detach());
  }
  for (const plan::SlotId slot : program.handed_out)
    run.slots[slot].reset();
  const bool records = std::any_of(program.output_gradients.begin(), program.output_gradients.end(),
                                   [](plan::SlotId slot) { return slot != plan::kNoSlot; });
  if (!records) {
    lease->give_back();
    return results;
  }
  const auto node = torch_versions::make_node<PlanNode>(lease);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i] != plan::kNoSlot && program.slots[program.inputs[i]].needs_gradient)
      node->add_next_edge(torch::autograd::impl::gradient_edge(given[i]));
  }
  for (const at::Tensor& parameter : program.parameters) {
    if (parameter.requires_grad())
      node->add_next_edge(torch::autograd::impl::gradient_edge(parameter));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (program.output_gradients[i] != plan::kNoSlot)
      torch::autograd::set_history(results[i], node);
  }
  return results;
}

std::vector<std::size_t> tag_places(const Graph::Impl& graph) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].tag_slot)
      places.push_back(place);
  }
  return places;
}

std::shared_ptr<Lease> make_plan(const Graph& owner, const PlanKey& key,
                                 const std::vector<at::Tensor>& given, GraphState::Data& state,
                                 const ForwardScope& scope) {
  const Graph::Impl& graph = owner.impl();
  auto program = std::make_shared<plan::Program>();
  auto run = std::make_unique<plan::Run>();
  program->records_gradients = key.records_gradients;
  program->device = given.front().device();
  program->is_for_inference = key.is_for_inference;
  program->watch(owner);
  const GraphCallContext context(state, scope);
  const WithContext with_context(*run, context);
  PlanLowering lowering(*program, *run, context);
  std::vector<PlanValue> values;
  for (const at::Tensor& tensor : given)
    values.push_back(lowering.take(tensor));
  const std::span<const PlanValue> all(values);
  const auto places = lowering.lower_graph(graph, {}, 0, {}, all.first(graph.inputs.size()),
                                           all.subspan(graph.inputs.size()));
  for (const std::size_t output : graph.outputs)
    lowering.make_output(places[output]);
  for (const StateSlot& slot : graph.states)
    lowering.make_output(places[slot.written]);
  if (key.keeps_tags) {
    for (const std::size_t place : tag_places(graph))
      lowering.make_output(places[place]);
  }
  plan::complete(*program);
  run->slots.resize(program->slots.size());
  run->absent.resize(program->slots.size());
  run->sums.resize(program->parameters.size());
  return std::make_shared<Lease>(std::move(program), std::move(run));
}

bool trains_a_part(const Graph& graph) {
  const auto modules = graph.modules();
  return std::any_of(modules.begin(), modules.end(),
                     [](const auto& module) { return module->is_training(); });
}

/// A plan for inference, made by a forward whose outputs are discarded: lowering runs unfolded
/// operations, and the first forward must have the bits of all later ones. It has a state and
/// random numbers of its own, so that it leaves no trace.
std::shared_ptr<const plan::Program> plan_beforehand(const Graph& owner, const PlanKey& key,
                                                     const std::vector<at::Tensor>& given,
                                                     const GraphState::Data& state,
                                                     const ForwardScope& scope) {
  const TaskRandom random(0);
  GraphState own(owner);
  own.data().states = state.states;
  own.data().keeps_tags = state.keeps_tags;
  tell_beginning(owner.impl(), given.front(), own.data(), scope);
  return make_plan(owner, key, given, own.data(), scope)->shared_program();
}

}  // namespace

std::shared_ptr<const plan::Program> PlanCache::find(const PlanKey& key) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key || !entry->program->still_holds())
      continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().program;
  }
  return nullptr;
}

void PlanCache::add(PlanKey key, std::shared_ptr<const plan::Program> program) {
  const std::lock_guard lock(mutex_);
  // A plan of this key that no longer holds makes room.
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
  if (entries_.size() == kMost)
    entries_.pop_back();
  entries_.insert(entries_.begin(), {std::move(key), std::move(program)});
}

void PlanCache::drop_idle_memory() {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    const std::lock_guard of_program(entry.program->mutex);
    entry.program->spare.clear();
  }
}

/// Plans made now fold constants: in evaluation, without gradients, of a graph that was prepared
/// for inference and has some.
bool CompiledExecutor::folds_constants(const Graph& graph) const {
  return graph.impl().is_for_inference && !at::GradMode::is_enabled() && !graph.is_training() &&
         !plans_.has_nothing_to_fold;
}

void CompiledExecutor::run(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
                           const ForwardScope& scope, std::vector<at::Tensor>& outputs) {
  if (scope.calls_layers || Autocast::of_this_thread().is_on() || Float8Scope::of_this_thread())
    return run_graph(graph.impl(), inputs, state, scope, outputs);
  run_plan(graph, inputs, state, scope, outputs);
}

std::shared_ptr<const plan::Program> CompiledExecutor::run_plan(const Graph& owner,
                                                                const Inputs& inputs,
                                                                GraphState::Data& state,
                                                                const ForwardScope& scope,
                                                                std::vector<at::Tensor>& outputs) {
  const Graph::Impl& graph = owner.impl();
  begin_times(state, inputs[0].device());
  begin_states(graph, inputs[0], state, scope);
  tell_beginning(graph, inputs[0], state, scope);
  std::vector<at::Tensor> given(inputs.begin(), inputs.end());
  given.insert(given.end(), state.states.begin(), state.states.end());
  PlanKey key = key_of(inputs, state, scope, folds_constants(owner));
  std::shared_ptr<Lease> lease;
  auto program = plans_.find(key);
  if (program == nullptr && key.is_for_inference) {
    const bool is_evaluated = !trains_a_part(owner);  // else a forward more would leave traces
    if (is_evaluated) {
      plans_.drop_idle_memory();
      program = plan_beforehand(owner, key, given, state, scope);
    }
    if (program != nullptr && !program->folded.empty()) {
      plans_.add(key, program);
    } else {
      if (is_evaluated && !key.keeps_tags)
        plans_.has_nothing_to_fold = true;
      key.is_for_inference = false;
      program = plans_.find(key);
    }
  }
  if (program != nullptr) {
    lease = Lease::take(program, plans_);
    plan::Run& run = lease->run();
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (program->inputs[i] != plan::kNoSlot)
        run.slots[program->inputs[i]] = given[i].requires_grad() ? given[i].detach() : given[i];
    }
    std::fill(run.absent.begin(), run.absent.end(), std::uint8_t{0});
    const GraphCallContext context(state, scope);
    const WithContext with_context(run, context);
    run_list(*program, program->forward, run, &scope.stop);
  } else {
    plans_.drop_idle_memory();
    lease = make_plan(owner, key, given, state, scope);
    program = lease->shared_program();
    plans_.add(key, program);
  }
  keep_profile(graph, state);
  std::vector<at::Tensor> results = hand_out(lease, given);
  auto next = results.begin();
  outputs.assign(next, next + static_cast<std::ptrdiff_t>(graph.outputs.size()));
  next += static_cast<std::ptrdiff_t>(graph.outputs.size());
  for (at::Tensor& value : state.states)
    value = *next++;
  if (state.keeps_tags) {
    for (const std::size_t place : tag_places(graph))
      state.tags[*graph.places[place].tag_slot] = *next++;
  }
  return program;
}

// The part of Graph that knows both executors. It stands here, so that run/ does not depend on
// compile/.

void Graph::set_execution(Execution execution) {
  impl_->execution_choice.clear();
  impl_->trunk.reset();
  if (execution == Execution::kAuto) {
    const std::optional<std::string> reason = why_dynamic(*this);
    impl_->execution_choice = reason ? "dynamic, because " + *reason : "compiled";
    execution = reason ? Execution::kDynamic : Execution::kCompiled;
  }
  if (execution == Execution::kCompiled) {
    impl_->executor = std::make_unique<CompiledExecutor>();
  } else {
    impl_->executor = make_dynamic_executor();
  }
}

void Graph::prepare_for_inference() {
  if (!impl_->execution_choice.empty())
    return;  // nobody asked for a plan, so none may round otherwise
  impl_->is_for_inference = true;
  set_execution(execution());  // plans that were made before fold nothing
}

plan::Plan Graph::compile(const Inputs& inputs) {
  const auto given = checked_inputs(*impl_, inputs);
  // A dynamic graph stays one: nobody else sees this plan.
  CompiledExecutor own;
  auto* const executor = dynamic_cast<CompiledExecutor*>(impl_->executor.get());
  SpareState state(*this);
  std::vector<at::Tensor> outputs;
  try {
    return plan::Plan(
        (executor != nullptr ? *executor : own)
            .run_plan(*this, {given.data(), given.size()}, state->data(), {}, outputs));
  } catch (const Failure& failure) {
    failure.raise();
  }
}

plan::Plan Graph::compile(std::int64_t rows) {
  std::vector<at::Tensor> inputs;
  for (const std::size_t place : impl_->inputs) {
    const auto& spec = impl_->nodes[place].result;
    TREADLE_EXPECTS(spec.has_value(), "a graph that was built without sizes needs inputs");
    std::vector<std::int64_t> sizes = spec->sizes;
    std::replace(sizes.begin(), sizes.end(), TensorSpec::kVaries, rows);
    inputs.push_back(at::zeros(sizes, at::TensorOptions(spec->dtype)));
  }
  return compile(inputs);
}

}  // namespace treadle::graph
