#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/history/run_observer.h>
#include <treadle/engine/run_context.h>
#include <treadle/engine/session.h>
#include <treadle/engine/weight_average.h>

namespace treadle::engine {

/// The weights that the optimizer evaluates (EvaluationWeights), in the model in place of those it
/// steps with.
class OptimizersAverage {
 public:
  /// Both outlive it.
  OptimizersAverage(TrainingStep& step, Model& model) : step_(step), model_(model) {}

  void put_in();
  bool is_in_model() const { return own_.defined(); }
  /// The model's own weights and buffers again, bit for bit.
  void take_out();

 private:
  TrainingStep& step_;
  Model& model_;
  at::Tensor own_;  // while the others are in the model
  std::vector<at::Tensor> own_buffers_;
};

/// An average in place of the weights, for as long as one of these lives.
class AverageInModel {
 public:
  /// `average` outlives it.
  template <typename Average>
  explicit AverageInModel(Average& average) : take_out_([&average] { average.take_out(); }) {
    average.put_in();
  }
  ~AverageInModel() { take_out_(); }
  AverageInModel(const AverageInModel&) = delete;
  AverageInModel& operator=(const AverageInModel&) = delete;

 private:
  std::function<void()> take_out_;
};

/// Which weights a training is evaluated with and ends with: the last, an average over the steps (a
/// callback's or the optimizer's), or those of the best epoch. One training thread.
class WeightChoice {
 public:
  /// All outlive it.
  WeightChoice(TrainingStep& step, const SessionSetup& setup, RunContext& context);
  ~WeightChoice();

  // Before the first step. Each at most once: a second call is a DocumentError.
  void average(const AveragingPlan& plan);
  /// The best is the best by the number `chosen_by`.
  void end_with_kept(const std::string& chosen_by);

  /// The first weights are part of the average, if the plan includes them.
  void add_first_weights();
  /// For an evaluation of what the training would end with. Null: it is in the model already.
  /// `epoch`, from 0: where layers need statistics for the average, they are of its rows.
  std::unique_ptr<AverageInModel> average_in_model(std::int64_t epoch);
  /// The same within an epoch. Null also where that would take a pass over its rows.
  std::unique_ptr<AverageInModel> average_in_model();

  /// The weights in the model are the best so far.
  void keep();
  /// Whether the epoch is the best so far: by keep(), else by its loss.
  bool is_best(const EpochSummary& epoch);

  /// After the last epoch. `undefined`: so is the number to choose by, with a note already.
  void choose(std::int64_t epochs_done, bool undefined);
  bool ends_with_kept() const { return ends_with_kept_ && !kept_.empty(); }
  const std::string& chosen_by() const { return chosen_by_; }
  void describe(TrainingResult& result) const;

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  bool has_average() const;
  std::unique_ptr<AverageInModel> put_in();
  bool is_average_in_model() const;
  void refresh_statistics(std::int64_t epoch);
  c10::Device device() const { return step_.device(); }

  TrainingStep& step_;
  const SessionSetup& setup_;
  RunContext& context_;
  std::unique_ptr<WeightAverage> average_;         // null: the weights are not averaged
  std::unique_ptr<OptimizersAverage> optimizers_;  // null: it has none
  bool refreshes_ = false;                         // an average needs statistics of its own
  bool ends_with_kept_ = false;
  std::string chosen_by_;
  StateDict kept_;
  bool kept_is_average_ = false;
  bool keeps_epoch_ = false;  // keep() was called after it
  Number last_loss_;
  Number best_loss_;
  std::int64_t best_epoch_ = 0;  // from 1; 0: none
};

}  // namespace treadle::engine
