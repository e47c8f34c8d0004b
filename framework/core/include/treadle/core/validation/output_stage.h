#pragma once

#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/number.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/validation/predictions.h>

namespace treadle {

/// A stage behind a trained model, which changes its predictions: calibrated probabilities,
/// intervals that hold, a decision. It learns from rows that the model was not trained on, is saved
/// with the model, and changes everything that the model predicts from then on.
///
/// One object per target. Started and fitted by one thread; applied by several afterwards.
///
/// **Rationale:** it learns from all rows at once, as quantiles and isotonic steps need. They are
/// validation rows, so there is memory for a number or two of each.
class OutputStage : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.output/0";

  ~OutputStage() override;

  /// Called once, first. Throws a DataError when the stage has no meaning for such a target, saying
  /// for which it has.
  void start(const TargetSpec& target);

  /// Called before the training, with the targets of the rows that fit() will be given, where each
  /// row has one: what fit() would refuse because of them alone, it refuses here.
  void expect_enough(const TargetBatch& target) const;

  /// Learns from predictions that the stages before it have changed, in the data's units, on the
  /// CPU. Positions count target.weights() (1 each where undefined); those of weight 0 are padding.
  /// Throws a DataError when these rows are too few or lack a class, with how many are needed.
  void fit(const Prediction& prediction, const TargetBatch& target);

  /// For any rows, with the tensors that fit() was given; `rows` has their groups, where the data
  /// has some. Each row is changed by itself.
  Prediction apply(Prediction prediction, const Batch& rows) const;

  /// Whether apply() depends on the rows' groups: their names are then saved with the model.
  bool needs_groups() const;

  /// Whether it learns from folds and predicts with their models, which are then saved with the
  /// run's: fit() is given Prediction::fold_numbers, and apply() Prediction::folds for rows that no
  /// model was trained on. The rows of a fold have no such predictions; apply() leaves them as they
  /// are.
  bool needs_folds() const;

  /// The fitted numbers, for people: "temperature" 1.8. After fit() or load_state().
  std::vector<MetricValue> learned() const;

 private:
  virtual void do_start(const TargetSpec& target) = 0;
  virtual void do_expect_enough(const TargetBatch& /*target*/) const {}
  virtual void do_fit(const Prediction& prediction, const TargetBatch& target) = 0;
  virtual Prediction do_apply(Prediction prediction, const Batch& rows) const = 0;
  virtual bool do_needs_groups() const { return false; }
  virtual bool do_needs_folds() const { return false; }
  virtual std::vector<MetricValue> do_learned() const = 0;
};

}  // namespace treadle
