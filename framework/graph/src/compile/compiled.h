#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <treadle/core/model/tensor_spec.h>
#include <treadle/plan/program.h>

#include "run/executor.h"

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
  bool truncates_bptt = false;
  bool keeps_tags = false;
  bool is_for_inference = false;  ///< constants are folded

  bool operator==(const PlanKey&) const = default;
};

/// The plans of a graph, the last used first.
class PlanCache {
 public:
  /// Sizes of batches are few: a full one and the last, in training and in validation.
  static constexpr std::size_t kMost = 8;

  /// Learned by making a plan for inference.
  std::atomic<bool> has_nothing_to_fold{false};

  std::shared_ptr<const plan::Program> find(const PlanKey& key);
  void add(PlanKey key, std::shared_ptr<const plan::Program> program);
  /// What runs of all plans hold while nobody runs them: a plan for other sizes, in evaluation
  /// after training, needs that memory more.
  void drop_idle_memory();

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<const plan::Program> program;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// Runs forwards from plans, which it makes for each combination of input sizes and modes.
class CompiledExecutor final : public Executor {
 public:
  Execution execution() const override { return Execution::kCompiled; }

  /// Node by node under autocast and in float8.
  void run(const Graph& graph, const Inputs& inputs, GraphState::Data& state,
           const ForwardScope& scope, std::vector<at::Tensor>& outputs) override;

  /// A forward from a plan. Returns the plan.
  std::shared_ptr<const plan::Program> run_plan(const Graph& graph, const Inputs& inputs,
                                                GraphState::Data& state, const ForwardScope& scope,
                                                std::vector<at::Tensor>& outputs);

 private:
  bool folds_constants(const Graph& graph) const;

  PlanCache plans_;
};

}  // namespace treadle::graph
