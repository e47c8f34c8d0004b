#include "plan_compiled.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>

#include <treadle/base/error.h>
#include <treadle/core/torch_versions.h>

#include "failure.h"
#include "plan_lowering.h"
#include "plan_run.h"
#include "run_graph.h"

namespace treadle::graph {
namespace {

using torch::autograd::variable_list;

/// Whether it is there, on the CPU, and nothing but zeros.
bool is_zero(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.is_non_overlapping_and_dense())
    return false;
  const auto* bytes = static_cast<const char*>(tensor.data_ptr());
  const std::size_t count = tensor.nbytes();
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

/// How often it was written to, as far as libtorch counts.
std::uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

PlanKey key_of(const Graph& owner, const Inputs& inputs, const GraphState::Data& state) {
  PlanKey key;
  key.records_gradients = at::GradMode::is_enabled();
  key.keeps_tags = state.keeps_tags;
  key.is_for_inference = folds_constants(owner);
  key.has_other_threads = owner.impl().has_branches && has_other_threads();
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

/// What one run works on, given back to the plan by whoever holds it last.
class Lease {
 public:
  Lease(std::shared_ptr<const PlanProgram> program, std::unique_ptr<PlanRun> run)
      : program_(std::move(program)), run_(std::move(run)) {}

  static std::shared_ptr<Lease> take(const std::shared_ptr<const PlanProgram>& program,
                                     PlanCache& plans) {
    std::unique_ptr<PlanRun> run;
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

  const PlanProgram& program() const { return *program_; }
  const std::shared_ptr<const PlanProgram>& shared_program() const { return program_; }
  PlanRun& run() { return *run_; }
  bool is_over() const { return run_ == nullptr; }

  void give_back() {
    if (run_ == nullptr)
      return;
    run_->leave_branches();
    for (const SlotId slot : program_->passing)
      run_->slots[slot].reset();
    for (CallTape& tape : run_->tapes)
      tape = {};
    for (at::Tensor& sum : run_->sums)
      sum.reset();
    // A run that made the plan has no block.
    if (program_->arena_bytes > 0 && !run_->arena.defined()) {
      run_.reset();
      return;
    }
    const std::lock_guard lock(program_->mutex);
    program_->spare.push_back(std::move(run_));
  }

 private:
  static std::unique_ptr<PlanRun> make_run(const PlanProgram& program) {
    constexpr std::int64_t kAlignment = 256;
    auto run = std::make_unique<PlanRun>();
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
    for (const SlotId slot : program.passing)
      passes[slot] = true;
    for (SlotId slot = 0; slot < program.slots.size(); ++slot) {
      const PlanSlot& planned = program.slots[slot];
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

  std::shared_ptr<const PlanProgram> program_;
  std::unique_ptr<PlanRun> run_;
};

void run_list(const PlanProgram& program, const std::vector<PlanInstruction>& list, PlanRun& run,
              GraphState::Data* state, const std::stop_token* stop) {
  for (const PlanInstruction& instruction : list) {
    if (stop != nullptr && stop->stop_requested())
      throw Interrupted("stopped within a forward of the model");
    run_instruction(program, instruction, run, state, stop);
    for (const SlotId slot : instruction.done)
      run.slots[slot].reset();
    if (run.arena.defined())
      continue;
    for (const SlotId slot : instruction.done_in_arena)
      run.slots[slot].reset();
  }
}

/// The whole plan as one node of libtorch's graph of gradients. Gradients of parameters are added
/// where they lie, without a node for each of them.
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
  /// Takes the gradients out of `given`: nobody else holds them while they are used.
  variable_list propagate(Lease& lease, variable_list& given) {
    const PlanProgram& program = lease.program();
    PlanRun& run = lease.run();
    const bool only_some = torch::autograd::get_current_graph_task_exec_info() != nullptr &&
                           !torch::autograd::get_current_graph_task_exec_info()->empty();
    std::fill(run.absent.begin(), run.absent.end(), std::uint8_t{0});
    for (std::size_t i = 0, next = 0; i < program.output_gradients.size(); ++i) {
      const SlotId slot = program.output_gradients[i];
      if (slot == kNoSlot)
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
    run_list(program, program.backward, run, nullptr, nullptr);
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
      if (program.inputs[i] == kNoSlot || !program.slots[program.inputs[i]].needs_gradient)
        continue;
      const SlotId slot = program.input_gradients[i];
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
  /// A tensor that may outlive the run.
  static at::Tensor own_memory(const at::Tensor& tensor, const PlanRun& run) {
    const bool is_arena = run.arena.defined() && tensor.storage().unsafeGetStorageImpl() ==
                                                     run.arena.storage().unsafeGetStorageImpl();
    return is_arena ? tensor.clone() : tensor;
  }

 private:
  std::shared_ptr<Lease> lease_;
};

/// Hands out what a run gave; with a record of gradients where one is kept.
std::vector<at::Tensor> hand_out(const std::shared_ptr<Lease>& lease,
                                 const std::vector<at::Tensor>& given) {
  const PlanProgram& program = lease->program();
  PlanRun& run = lease->run();
  std::vector<at::Tensor> results;
  for (const SlotId slot : program.outputs) {
    results.push_back(slot == kNoSlot
                          ? at::Tensor()
                          : PlanNode::own_memory(value_of(program, run, slot), run).detach());
  }
  for (const SlotId slot : program.handed_out)
    run.slots[slot].reset();
  const bool records = std::any_of(program.output_gradients.begin(), program.output_gradients.end(),
                                   [](SlotId slot) { return slot != kNoSlot; });
  if (!records) {
    lease->give_back();
    return results;
  }
  const auto node = torch_versions::make_node<PlanNode>(lease);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i] != kNoSlot && program.slots[program.inputs[i]].needs_gradient)
      node->add_next_edge(torch::autograd::impl::gradient_edge(given[i]));
  }
  for (const at::Tensor& parameter : program.parameters) {
    if (parameter.requires_grad())
      node->add_next_edge(torch::autograd::impl::gradient_edge(parameter));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (program.output_gradients[i] != kNoSlot)
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
                                 const std::stop_token& stop) {
  const Graph::Impl& graph = owner.impl();
  auto program = std::make_shared<PlanProgram>();
  auto run = std::make_unique<PlanRun>();
  program->records_gradients = key.records_gradients;
  program->device = given.front().device();
  program->is_for_inference = key.is_for_inference;
  program->remember(owner);
  PlanLowering lowering(*program, *run, state, stop);
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
  if (key.is_for_inference)
    fold_constants(*program);
  if (program->records_gradients)
    add_backward(*program);
  fuse_elements(*program);
  lay_out(*program);
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

/// Not of the run that finds out: what is folded rounds otherwise, and the first forward gives what
/// all others give. It has a state and random numbers of its own.
std::shared_ptr<const PlanProgram> plan_beforehand(const Graph& owner, const PlanKey& key,
                                                   const std::vector<at::Tensor>& given,
                                                   const GraphState::Data& state,
                                                   const std::stop_token& stop) {
  const TaskRandom random(0);
  GraphState own(owner);
  own.data().states = state.states;
  own.data().keeps_tags = state.keeps_tags;
  tell_beginning(owner.impl(), given.front(), own.data(), stop);
  return make_plan(owner, key, given, own.data(), stop)->shared_program();
}

}  // namespace

bool folds_constants(const Graph& graph) {
  return graph.impl().is_for_inference && !at::GradMode::is_enabled() && !graph.is_training() &&
         !graph.impl().plans->has_nothing_to_fold;
}

bool plans_at_once(const Graph::Impl& graph, const BranchGroup& group, const PlanProgram& program) {
  return program.is_for_inference ? graph.branches == Branches::kAtOnce
                                  : runs_at_once(group, graph.branches);
}

void PlanProgram::remember(const Graph& graph) {
  const auto watch = [&](const at::Tensor& tensor) {
    watched.push_back({tensor, tensor.data_ptr(), tensor.requires_grad(), version_of(tensor)});
  };
  for (const at::Tensor& parameter : graph.parameters())
    watch(parameter);
  for (const at::Tensor& buffer : graph.buffers())
    watch(buffer);
  for (const auto& module : graph.modules())
    modes.emplace_back(module.get(), module->is_training());
}

bool PlanProgram::still_holds() const {
  return std::all_of(watched.begin(), watched.end(),
                     [&](const Watched& one) {
                       return one.tensor.data_ptr() == one.data &&
                              one.tensor.requires_grad() == one.is_trained &&
                              (folded.empty() || version_of(one.tensor) == one.version);
                     }) &&
         std::all_of(decided.begin(), decided.end(),
                     [&](const Decided& one) {
                       return one.at_once == plans_at_once(*one.graph, *one.group, *this);
                     }) &&
         std::all_of(modes.begin(), modes.end(),
                     [](const auto& mode) { return mode.first->is_training() == mode.second; });
}

std::shared_ptr<const PlanProgram> PlanCache::find(const PlanKey& key) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key || !entry->program->still_holds())
      continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().program;
  }
  return nullptr;
}

void PlanCache::add(PlanKey key, std::shared_ptr<const PlanProgram> program) {
  const std::lock_guard lock(mutex_);
  // What no longer holds makes room.
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

void run_compiled(const Graph& owner, const Inputs& inputs, GraphState::Data& state,
                  const std::stop_token& stop, std::vector<at::Tensor>& outputs,
                  std::shared_ptr<const PlanProgram>* used) {
  const Graph::Impl& graph = owner.impl();
  begin_states(graph, inputs[0], state);
  tell_beginning(graph, inputs[0], state, stop);
  std::fill(state.times.begin(), state.times.end(),
            std::pair<GraphState::Data::Clock::time_point, GraphState::Data::Clock::time_point>());
  std::vector<at::Tensor> given(inputs.begin(), inputs.end());
  given.insert(given.end(), state.states.begin(), state.states.end());
  PlanKey key = key_of(owner, inputs, state);
  std::shared_ptr<Lease> lease;
  auto program = graph.plans->find(key);
  if (program == nullptr && key.is_for_inference) {
    const bool is_evaluated = !trains_a_part(owner);  // else a forward more would leave traces
    if (is_evaluated) {
      graph.plans->drop_idle_memory();
      program = plan_beforehand(owner, key, given, state, stop);
    }
    if (program != nullptr && !program->folded.empty()) {
      graph.plans->add(key, program);
    } else {
      if (is_evaluated && !key.keeps_tags)
        graph.plans->has_nothing_to_fold = true;
      key.is_for_inference = false;
      program = graph.plans->find(key);
    }
  }
  if (program != nullptr) {
    lease = Lease::take(program, *graph.plans);
    PlanRun& run = lease->run();
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (program->inputs[i] != kNoSlot)
        run.slots[program->inputs[i]] = given[i].requires_grad() ? given[i].detach() : given[i];
    }
    std::fill(run.absent.begin(), run.absent.end(), std::uint8_t{0});
    run_list(*program, program->forward, run, &state, &stop);
    if (used != nullptr)
      *used = program;
  } else {
    graph.plans->drop_idle_memory();
    lease = make_plan(owner, key, given, state, stop);
    graph.plans->add(key, lease->shared_program());
    if (used != nullptr)
      *used = lease->shared_program();
  }
  if (!state.times.empty())
    state.profile = profile_of(graph, state);
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
}

}  // namespace treadle::graph
