#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <c10/core/Stream.h>
#include <oneapi/tbb/flow_graph.h>

#include <treadle/core/history/timeline.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/engine/step_rows.h>

#include "step/step_shard.h"

namespace treadle::engine {

/// Divides a sum over a large arena among the workers.
void in_ranges(std::int64_t size, const std::function<void(std::int64_t, std::int64_t)>& sum);

/// The shards of a step as a flow graph: start → each shard → their gradients added. Made once, run
/// every step by the training thread.
class ShardGraph {
 public:
  using Shards = std::vector<std::unique_ptr<StepShard>>;

  /// `arena`: the model's, whose shard is the first. `adds`: whether all shards are here. All
  /// outlive this.
  ShardGraph(ParameterArena& arena, const Shards& shards, const std::vector<Model*>& replicas,
             Timeline* timeline, bool adds);
  ~ShardGraph();

  /// Of all shards here, in their order.
  std::vector<ParameterArena*> arenas();

  /// Afterwards the model's arena has the gradients of all shards, or of its own where others are
  /// elsewhere. Throws what the first shard threw.
  void run(Model& model, const StepRows& rows);

 private:
  using Message = oneapi::tbb::flow::continue_msg;
  using Node = oneapi::tbb::flow::continue_node<Message>;

  void run(std::size_t index) noexcept;
  void reduce() noexcept;

  ParameterArena& arena_;
  const Shards& shards_;
  Timeline* const timeline_;
  const bool adds_;
  std::vector<std::unique_ptr<ParameterArena>> arenas_;  // of the replicas
  std::vector<const ParameterArena*> terms_;
  std::vector<std::exception_ptr> errors_;
  const StepRows* rows_ = nullptr;
  c10::Stream stream_;  // of the training thread

  oneapi::tbb::flow::graph graph_;
  oneapi::tbb::flow::broadcast_node<Message> start_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Node reduce_;
};

}  // namespace treadle::engine
