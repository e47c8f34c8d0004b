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
  bool is_for_inference = false;   ///< see fold_constants()
  bool has_other_threads = false;  ///< branches may run at once

  bool operator==(const PlanKey&) const = default;
};

/// The plans of a graph, the last used first.
class PlanCache {
 public:
  /// Sizes of batches are few: a full one and the last, in training and in validation.
  static constexpr std::size_t kMost = 8;

  /// Found out by making a plan for inference.
  std::atomic<bool> has_nothing_to_fold{false};

  std::shared_ptr<const PlanProgram> find(const PlanKey& key);
  void add(PlanKey key, std::shared_ptr<const PlanProgram> program);
  /// Of a graph with branches: whether forwards still run node by node, to tell whether branches
  /// pay.
  bool is_to_be_timed() const { return timed_ < BranchGroup::Cost::kTimed; }
  void note_timed() { ++timed_; }
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

/// Whether plans made now fold constants: in evaluation, without gradients, of a graph that was
/// prepared for inference and has some.
bool folds_constants(const Graph& graph);
/// Whether such a plan has the branches run at once. Where it folds constants only if they are
/// forced to: folding rounds otherwise, and bits must not depend on timing.
bool plans_at_once(const Graph::Impl& graph, const BranchGroup& group, const PlanProgram& program);

/// The same as run_graph(), from a plan: one that the graph has, or one that is made. `used`:
/// which.
void run_compiled(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
                  const std::stop_token& stop, std::vector<at::Tensor>& outputs,
                  std::shared_ptr<const PlanProgram>* used = nullptr);

}  // namespace treadle::graph
