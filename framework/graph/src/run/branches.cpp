#include "run/branches.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include <ATen/ThreadLocalState.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <treadle/base/random.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/task_random.h>

#include "forward/gradient_order.h"
#include "run/graph_data.h"

// Concurrent branches, with the bits of one after the other.
//
// Forward: every branch draws from a random stream of its own (derived from the group's seed and
// the place) and, if gradients are recorded, has an autograd graph of its own between detached
// leaves and its result. To the outer graph, the group is one autograd node (Fork), whose inputs
// are the sources and the parameters of all branches.
//
// Backward: branches are differentiated concurrently, each from its result to its leaves and
// parameters; then gradients of a source are summed by one thread in a fixed order, the last branch
// first (rules 1 and 3 of run/gradient_order.h). The records are retained, because autograd may run
// the backward twice; Forked owns them, not the graph, which the backward may outlive.
//
// Threads: tasks inherit libtorch's thread-local settings of the caller. The caller waits in
// isolation, so that it picks up no unrelated task, such as another training's, while it holds a
// state.
//
// The groups are found when a graph is built (find_branch_groups()), whether or not branches will
// run concurrently. Random streams and accumulation points follow them in both cases, and so the
// bits are the same.

namespace treadle::graph {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Runs body(0) … body(count - 1) as tasks, with this thread's settings: grad mode, autocast,
/// float8, dispatch. Rethrows the failure of the lowest index, so that errors do not depend on
/// timing. Off the CPU one after the other: the device works on its own, and tasks would enqueue on
/// other streams than this thread.
void at_once(c10::Device device, std::size_t count, const std::function<void(std::size_t)>& body) {
  if (!device.is_cpu()) {
    for (std::size_t i = 0; i < count; ++i)
      body(i);
    return;
  }
  // Without the stream of random numbers (TaskRandom): each branch makes its own.
  const at::ThreadLocalState settings;
  const Autocast autocast = Autocast::of_this_thread();
  const std::optional<Float8Use> float8 = Float8Scope::of_this_thread();
  std::vector<std::exception_ptr> failures(count);
  const auto one = [&](std::size_t i) {
    try {
      const at::ThreadLocalStateGuard guard(settings);
      const AutocastScope casts(autocast);
      const Float8Scope products(float8);
      body(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  // While waiting, this thread must not pick up other work: an evaluation in another training would
  // draw from the random numbers of the step that this thread is in. So no flow graph: a thread
  // that waits for one takes up any task, also in isolation (seen with oneTBB 2021.8).
  oneapi::tbb::this_task_arena::isolate([&] {
    oneapi::tbb::parallel_for(std::size_t{0}, count, one, oneapi::tbb::simple_partitioner());
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure)
      std::rethrow_exception(failure);
  }
}

c10::Device device_among(at::TensorList tensors) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [](const at::Tensor& tensor) { return tensor.defined(); });
  return found == tensors.end() ? c10::Device(c10::kCPU) : found->device();
}

/// One forward of a group at once, and what its backward needs.
struct Forked : torch::CustomClassHolder {
  const BranchGroup* group = nullptr;  // while the forward runs: backward may outlive the graph
  std::size_t sources = 0;
  /// Those of them that are there: states may be absent, and a Function takes no undefined tensors.
  std::vector<std::size_t> given;
  std::vector<std::vector<at::Tensor>> parameters;  // of each branch, those that are trained
  std::vector<std::vector<at::Tensor>>
      leaves;                       // of each branch, by source: undefined where it takes nothing
  std::vector<at::Tensor> results;  // of each branch, with its own graph of gradients
  std::function<at::Tensor(std::size_t branch, const std::vector<at::Tensor>& of_sources)> run;
};

/// Every branch has a graph of gradients of its own, so that backward, too, can work on all at
/// once.
class Fork : public torch::autograd::Function<Fork> {
 public:
  static variable_list forward(AutogradContext* context, c10::intrusive_ptr<Forked> forked,
                               at::TensorList inputs) {
    const std::size_t count = forked->group->places.size();
    std::vector<at::Tensor> sources(forked->sources);
    for (std::size_t i = 0; i < forked->given.size(); ++i)
      sources[forked->given[i]] = inputs[i];
    forked->leaves.resize(count);
    forked->results.resize(count);
    at_once(device_among(inputs), count, [&](std::size_t branch) {
      // autograd runs a Function's forward with recording switched off; the branch's own graph is
      // recorded here.
      const at::AutoGradMode record(true);
      std::vector<at::Tensor>& leaves = forked->leaves[branch];
      leaves.resize(sources.size());
      for (const std::size_t source : forked->group->inputs[branch]) {
        if (sources[source].defined() && !leaves[source].defined())
          leaves[source] =
              sources[source].detach().set_requires_grad(sources[source].requires_grad());
      }
      forked->results[branch] = forked->run(branch, leaves);
    });
    // Both refer to the graph and to this forward, and backward needs neither.
    forked->run = nullptr;
    forked->group = nullptr;
    context->saved_data["forked"] = c10::IValue::make_capsule(forked);
    // A branch whose result gets no gradient sends none back, instead of zeros.
    context->set_materialize_grads(false);
    variable_list results;
    // Decided by the branch's result: a branch of frozen layers on constant input has no gradient,
    // and the nodes after it must not record one.
    variable_list constants;
    for (const at::Tensor& result : forked->results) {
      results.push_back(result.detach());
      if (!result.requires_grad())
        constants.push_back(results.back());
    }
    context->mark_non_differentiable(constants);
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto forked =
        c10::static_intrusive_pointer_cast<Forked>(context->saved_data["forked"].toCapsule());
    const std::size_t count = forked->results.size();
    std::vector<variable_list> found(count);
    at_once(device_among(gradients), count, [&](std::size_t branch) {
      if (gradients[branch].defined() && forked->results[branch].requires_grad())
        found[branch] = gradients_of(*forked, branch, gradients[branch]);
    });
    // In the order of apply()'s arguments: the capsule, the sources, the parameters of each branch.
    variable_list all(1);  // of the capsule
    for (const std::size_t source : forked->given)
      all.push_back(sum_of(*forked, found, source));
    for (std::size_t branch = 0; branch < count; ++branch) {
      for (std::size_t i = 0; i < forked->parameters[branch].size(); ++i)
        all.push_back(found[branch].empty() ? at::Tensor() : found[branch][forked->sources + i]);
    }
    return all;
  }

 private:
  /// By source, then by parameter; undefined where there is none.
  static variable_list gradients_of(const Forked& forked, std::size_t branch,
                                    const at::Tensor& gradient) {
    variable_list wanted;
    std::vector<std::size_t> where;
    const std::vector<at::Tensor>& leaves = forked.leaves[branch];
    for (std::size_t source = 0; source < leaves.size(); ++source) {
      if (leaves[source].defined() && leaves[source].requires_grad()) {
        wanted.push_back(leaves[source]);
        where.push_back(source);
      }
    }
    for (std::size_t i = 0; i < forked.parameters[branch].size(); ++i) {
      wanted.push_back(forked.parameters[branch][i]);
      where.push_back(leaves.size() + i);
    }
    variable_list result(leaves.size() + forked.parameters[branch].size());
    if (wanted.empty())
      return result;
    // grad() and not backward(): results are returned instead of added to grad(), so tasks write to
    // no shared tensor, and the outer autograd adds them where the Fork stands in its order.
    const variable_list given =
        torch::autograd::grad({forked.results[branch]}, wanted, {gradient}, /*retain_graph=*/true,
                              /*create_graph=*/false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < given.size(); ++i)
      result[where[i]] = given[i];
    return result;
  }

  /// The last branch comes first, as autograd adds gradients of branches that ran one by one.
  static at::Tensor sum_of(const Forked& forked, const std::vector<variable_list>& found,
                           std::size_t source) {
    at::Tensor sum;
    for (std::size_t branch = forked.results.size(); branch-- > 0;) {
      if (found[branch].empty() || !found[branch][source].defined())
        continue;
      sum = sum.defined() ? sum.add(found[branch][source]) : found[branch][source];
    }
    return sum;
  }
};

/// Whether a node is no branch: what it keeps for its next call, or adds to the loss, has
/// gradients, which the branch's own record would cut off.
bool runs_by_itself(const Node& node) {
  return std::any_of(node.callees().begin(), node.callees().end(), [](const Callee& callee) {
    return callee.keeps_state() || callee.adds_losses();
  });
}

bool uses_weights_again(const Node& node);

/// Conservative: what an opaque layer does with its weights is unknown; a lowerable one uses each
/// once.
bool uses_weights_again(const Callee& callee) {
  if (callee.graph() == nullptr)
    return !callee.module()->parameters().empty() && callee.ability<Lowerable>() == nullptr;
  const Graph::Impl& graph = callee.graph()->impl();
  std::set<const void*> seen;
  for (const Place& place : graph.places) {
    if (place.node == nullptr)
      continue;
    if (uses_weights_again(*place.node))
      return true;
    for (const at::Tensor& parameter : place.node->parameters()) {
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second)
        return true;
    }
  }
  return false;
}

bool uses_weights_again(const Node& node) {
  // Callees may share them: the branches of a switch by row.
  std::set<const void*> seen;
  for (const Callee& callee : node.callees()) {
    for (const at::Tensor& parameter : distinct_parameters(*callee.module())) {
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second)
        return true;
    }
  }
  return std::any_of(node.callees().begin(), node.callees().end(), [&](const Callee& callee) {
    return uses_weights_again(callee) ||
           (node.repeats_its_parts() && !callee.module()->parameters().empty());
  });
}

/// Whether a parameter of one of these places is also another place's.
bool shares_parameters(const Graph::Impl& graph, const std::vector<std::size_t>& places) {
  std::map<const void*, std::size_t> owners;
  for (const std::size_t place : places) {
    for (const at::Tensor& parameter : graph.places[place].node->parameters()) {
      if (!owners.emplace(parameter.unsafeGetTensorImpl(), place).second)
        return true;
    }
  }
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].node == nullptr ||
        std::find(places.begin(), places.end(), place) != places.end())
      continue;
    for (const at::Tensor& parameter : graph.places[place].node->parameters()) {
      if (owners.count(parameter.unsafeGetTensorImpl()) > 0)
        return true;
    }
  }
  return false;
}

}  // namespace

bool runs_in_parallel(const BranchGroup& group, Branches branches) {
  return branches == Branches::kParallel &&
         !(group.must_run_one_by_one() && at::GradMode::is_enabled());
}

std::vector<BranchGroup> find_branch_groups(const Graph::Impl& graph) {
  std::map<std::size_t, std::vector<std::size_t>> levels;
  for (std::size_t place = 0; place < graph.places.size(); ++place) {
    if (graph.places[place].node != nullptr)
      levels[graph.nodes[place].level].push_back(place);
  }
  std::vector<BranchGroup> groups;
  for (auto& [level, places] : levels) {
    std::erase_if(places, [&](std::size_t place) {
      // A branch has one result: the Fork hands one tensor per place on.
      return !graph.places[place].further.empty() || runs_by_itself(*graph.places[place].node);
    });
    if (places.empty())
      continue;
    // The group runs where its first place stands: all inputs must exist by then.
    const std::size_t first = places.front();
    std::erase_if(places, [&](std::size_t place) {
      const std::vector<std::size_t>& inputs = graph.places[place].inputs;
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](std::size_t input) { return input > first; });
    });
    if (places.size() < 2 || shares_parameters(graph, places))
      continue;
    BranchGroup group;
    group.places = places;
    for (const std::size_t place : places) {
      // Within one branch, several uses of a weight are summed before the Fork returns the sum. One
      // by one, each use is added by itself to what other passes of the group have given. The two
      // differ only where a group is passed several times: must_run_one_by_one().
      group.adds_up_within = group.adds_up_within || uses_weights_again(*graph.places[place].node);
      std::vector<std::size_t>& inputs = group.inputs.emplace_back();
      for (const std::size_t input : graph.places[place].inputs) {
        auto found = std::find(group.sources.begin(), group.sources.end(), input);
        if (found == group.sources.end())
          found = group.sources.insert(group.sources.end(), input);
        inputs.push_back(static_cast<std::size_t>(found - group.sources.begin()));
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

void run_branches(const BranchGroup& group, Branches branches, std::uint64_t seed,
                  const std::vector<std::vector<at::Tensor>>& parameters,
                  std::vector<at::Tensor>& values,
                  const std::function<at::Tensor(std::size_t place, const Inputs& inputs)>& run) {
  const std::size_t count = group.places.size();
  const auto run_one = [&](std::size_t branch, const std::vector<at::Tensor>& of_sources) {
    std::vector<at::Tensor> given;
    for (const std::size_t source : group.inputs[branch])
      given.push_back(of_sources[source]);
    // By the place and not by the thread or the order: the same numbers however the branches run.
    const TaskRandom random(RandomStreams(seed).seed("branch", {group.places[branch]}));
    return run(group.places[branch], given);
  };
  std::vector<at::Tensor> sources;
  for (const std::size_t source : group.sources)
    sources.push_back(values[source]);

  if (runs_in_parallel(group, branches)) {
    if (!at::GradMode::is_enabled()) {
      at_once(device_among(sources), count,
              [&](std::size_t branch) { values[group.places[branch]] = run_one(branch, sources); });
      return;
    }
    auto forked = c10::make_intrusive<Forked>();
    forked->group = &group;
    forked->sources = group.sources.size();
    std::vector<at::Tensor> inputs;
    for (std::size_t source = 0; source < sources.size(); ++source) {
      if (!sources[source].defined())
        continue;
      forked->given.push_back(source);
      inputs.push_back(sources[source]);
    }
    for (const std::size_t place : group.places) {
      std::vector<at::Tensor>& trained = forked->parameters.emplace_back();
      for (const at::Tensor& parameter : parameters[place]) {
        if (parameter.requires_grad())
          trained.push_back(parameter);
      }
      inputs.insert(inputs.end(), trained.begin(), trained.end());
    }
    forked->run = run_one;
    const variable_list results = Fork::apply(std::move(forked), at::TensorList(inputs));
    for (std::size_t branch = 0; branch < count; ++branch)
      values[group.places[branch]] = results[branch];
    return;
  }

  // One by one: the accumulation point of the group stands where the Fork would (rule 3).
  for (at::Tensor& source : sources)
    source = accumulation_point(source);
  for (std::size_t branch = 0; branch < count; ++branch) {
    std::vector<at::Tensor> own(sources.size());
    for (const std::size_t source : group.inputs[branch]) {
      if (!own[source].defined())
        own[source] = accumulation_point(sources[source]);
    }
    values[group.places[branch]] = run_one(branch, own);
  }
}

}  // namespace treadle::graph
