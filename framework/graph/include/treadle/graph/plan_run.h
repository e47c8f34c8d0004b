#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/model.h>
#include <treadle/plan/plan.h>

namespace treadle::graph {

class Graph;

/// The forward of a plan, run in pieces: to look at values between instructions, to start in the
/// middle, or to time one kernel.
///
///     PlanRun run(graph, graph.compile(inputs));
///     run.load(inputs);
///     run.run(0, 3);
///     run.value(plan.instructions()[2].outputs[0]);
///
/// Every value has memory of its own, so all of them can be read until their instruction runs
/// again. One thread. Gradients are those of no backward: use the graph for training.
class PlanRun {
 public:
  /// The plan is one of `graph`, which must outlive the run.
  PlanRun(const Graph& graph, const plan::Plan& plan);
  ~PlanRun();
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  /// One for each of Plan::input_slots().
  void load(const Inputs& inputs);
  /// An input, or what an instruction would write: the instructions after it can run without it.
  /// Throws a DataError for sizes or a dtype other than the slot's.
  void load(std::size_t slot, const at::Tensor& value);

  /// Instructions `begin` to `end` of Plan::instructions(), `end` excluded; none of the backward.
  /// Throws a DataError for one that reads a slot which nothing has written, and a TrainingError
  /// once parameters or modes are others than those that the plan was made for.
  void run(std::size_t begin, std::size_t end);
  /// All of the forward.
  void run();

  /// Throws a DataError where nothing has written it.
  at::Tensor value(std::size_t slot) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace treadle::graph
