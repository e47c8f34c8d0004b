#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "plan_program.h"

namespace treadle::graph {

/// What a plan was made for. Another forward can use it when all of this is the same.
struct PlanKey {
  struct Given {
    TensorSpec spec;  ///< absent: a state that is not there
    c10::Device device = at::kCPU;
    bool needs_gradient = false;
    bool operator==(const Given&) const = default;
  };
  std::vector<Given> given;  ///< inputs, then states
  bool records_gradients = false;
  bool keeps_tags = false;
  bool folds = false;
  bool has_other_threads = false;  ///< branches may run at once

  bool operator==(const PlanKey&) const = default;
};

/// The plans of a graph, the last used first.
class PlanCache {
 public:
  /// Sizes of batches are few: a full one and the last, in training and in validation.
  static constexpr std::size_t kMost = 8;

  std::shared_ptr<const PlanProgram> find(const PlanKey& key);
  void add(PlanKey key, std::shared_ptr<const PlanProgram> program);
  /// Of a graph with branches: whether this forward is one of the first, which run node by node to
  /// tell whether branches pay.
  bool is_to_be_timed();
  /// What runs of all plans hold while nobody runs them: a plan for other sizes, in evaluation
  /// after training, needs that memory more.
  void drop_idle_memory();

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<const PlanProgram> program;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::atomic<int> timed_{0};
};

/// Whether plans made now fold constants: in evaluation of a graph that was prepared for inference.
/// Their branches run one by one: folding rounds otherwise, and bits must not depend on timing.
bool folds_constants(const Graph::Impl& graph);

/// The same as run_graph(), from a plan: one that the graph has, or one that is made. `used`:
/// which.
void run_compiled(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
                  const std::stop_token& stop, std::vector<at::Tensor>& outputs,
                  std::shared_ptr<const PlanProgram>* used = nullptr);

}  // namespace treadle::graph
