#include <treadle/graph/cost.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/profiler/util.h>

#include <treadle/base/error.h>
#include <treadle/tensor/eval_mode_guard.h>

#include "run/graph_data.h"
#include "run/run_graph.h"

// Counts operations of each node in one forward of zeros, with libtorch's own counting rules. Runs
// places itself, without branches, because counts are those of one thread.

namespace treadle::graph {
namespace {

/// Counts what this thread's operators compute while it lives. libtorch hands a function nothing
/// but the operator, so the sum is the thread's.
class Counted {
 public:
  Counted()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    sum_ = 0;
  }
  ~Counted() { at::removeCallback(handle_); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::int64_t take() { return std::exchange(sum_, 0); }

 private:
  /// Of an operator that was counted: those that it calls are it.
  struct Within final : at::ObserverContext {};

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    if (depth_ > 0)
      return nullptr;
    const auto count = static_cast<std::int64_t>(torch::profiler::impl::computeFlops(
        function.name(), torch::profiler::impl::saveExtraArgs(function)));
    if (count == 0)
      return nullptr;
    sum_ += count;
    ++depth_;
    return std::make_unique<Within>();
  }
  static void end(const at::RecordFunction&, at::ObserverContext* counted) {
    if (counted != nullptr)
      --depth_;
  }

  static inline thread_local std::int64_t sum_ = 0;
  static inline thread_local int depth_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace

std::vector<NodeCost> costs(Graph& graph, std::int64_t rows) {
  const Graph::Impl& impl = graph.impl();
  std::vector<at::Tensor> values(impl.places.size());
  for (const std::size_t input : impl.inputs) {
    const auto& spec = impl.nodes[input].result;
    TREADLE_EXPECTS(spec.has_value(), "costs are those of a graph whose inputs' sizes are known");
    std::vector<std::int64_t> sizes = spec->sizes;
    std::replace(sizes.begin(), sizes.end(), TensorSpec::kVaries, rows);
    values[input] = at::zeros(sizes, at::TensorOptions(spec->dtype));
  }
  const EvalModeGuard eval_mode(graph);
  const at::NoGradGuard no_gradients;
  GraphState state(graph);
  begin_states(impl, values[impl.inputs[0]], state.data(), {});
  tell_beginning(impl, values[impl.inputs[0]], state.data(), {});
  for (std::size_t i = 0; i < impl.states.size(); ++i)
    values[impl.states[i].read] = state.data().states[i];

  Counted counted;
  std::vector<NodeCost> costs(impl.places.size());
  for (std::size_t place = 0; place < impl.places.size(); ++place) {
    if (impl.places[place].node != nullptr) {
      c10::SmallVector<at::Tensor, 4> given;
      for (const std::size_t source : impl.places[place].inputs)
        given.push_back(values[source]);
      values[place] =
          impl.places[place].node->run({given.data(), given.size()}, state.data().nodes[place], {});
      costs[place].operations = counted.take();
      for (std::size_t i = 0; i < impl.places[place].further.size(); ++i)
        values[impl.places[place].further[i]] = state.data().nodes[place].callees[0].outputs[i];
    }
    if (values[place].defined())
      costs[place].bytes = static_cast<std::int64_t>(values[place].nbytes());
    for (const std::size_t done : impl.places[place].done)
      values[done].reset();
  }
  return costs;
}

}  // namespace treadle::graph
