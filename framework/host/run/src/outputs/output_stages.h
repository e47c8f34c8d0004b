#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/target_spec.h>
#include <treadle/core/validation/output_stage.h>
#include <treadle/core/validation/predictions.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The output stages of a document, behind its model: calibration, conformal sets, decision, in
/// this order, for each target that they have a meaning for. The one place where they are applied:
/// whoever shows, stores or measures what a model predicts calls apply().
///
/// Const functions may be called from several threads.
class OutputStages {
 public:
  /// Of a document without outputs: none, and apply() changes nothing.
  OutputStages() = default;
  /// Made and started. Throws the DataError of a stage that has no meaning for any target.
  OutputStages(const Runtime& runtime, const ResolvedWorkflow& workflow,
               std::vector<TargetSpec> targets);

  bool empty() const { return stages_.empty(); }
  /// See OutputStage::needs_groups().
  bool need_groups() const;
  /// See OutputStage::needs_folds(): whether a stage does, or one for this target, or every one.
  bool need_folds() const;
  bool need_folds(std::size_t target) const;
  bool all_need_folds() const;
  /// For messages: the component of the first that does.
  const std::string& needs_folds_first() const;

  /// See OutputStage::expect_enough(). `rows` has the targets as the data gave them; undefined
  /// where a row has several positions.
  void expect_enough(const Batch& rows) const;

  /// Each learns from what those before it have made of the predictions. `rows` has the targets as
  /// the data gave them. Throws a DataError when there are too few.
  void fit(Predictions predictions, const Batch& rows);
  /// The result is without the predictions of folds.
  Predictions apply(Predictions predictions, const Batch& rows) const;

  /// The fitted numbers of a stage for a target.
  struct Learned {
    std::string stage;   ///< its component
    std::string target;  ///< empty: the data has one
    std::vector<MetricValue> values;
  };
  std::vector<Learned> learned() const;

  StateDict state() const;
  /// Throws a StorageError when it is not of these stages.
  void load_state(const StateDict& state);

 private:
  struct Stage {
    std::string component;
    std::size_t target;
    std::unique_ptr<OutputStage> stage;
  };

  std::vector<TargetSpec> targets_;
  std::vector<Stage> stages_;
};

/// Whether a document has output stages.
bool has_outputs(const ResolvedWorkflow& workflow);

}  // namespace treadle::internal
