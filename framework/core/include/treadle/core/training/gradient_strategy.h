#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/history/timeline.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/objective.h>

namespace treadle {

/// A loss that a training loop computes itself, of some rows of a step: the model is that of the
/// loop's session, or a replica of it. Called by several threads at once, each with a model of its
/// own. Without a weight each row counts 1. Auxiliary losses of the model
/// (ForwardContext::add_loss) are not part of it.
using LossFunction =
    std::function<LossTerms(Model& model, const Batch& batch, ForwardContext& context)>;

/// The model and the objective to differentiate. Made by the framework; everything outlives the
/// call. Strategies pass it on as it is, or have add_gradients_in_parts() derive that of a part.
struct GradientTask {
  Model* model = nullptr;
  const Objective* objective = nullptr;
  /// How the terms of a part of the step are combined; null: the batch is the whole step.
  const Objective::Scales* scales = nullptr;
  Timeline* timeline = nullptr;  ///< where forward and backward are timed; null: nowhere
  /// Minimized instead of the objective; null: the objective is.
  const LossFunction* loss = nullptr;
};

/// Computes the gradients of a batch: back-propagation, in one piece or in micro-batches, through
/// all of time or truncated to one step.
///
/// One object serves a training; with shards it is called from several threads at once, each with a
/// replica of the model of its own.
class GradientStrategy : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.gradients/0";

  ~GradientStrategy() override;

  /// Adds the gradients of the objective's *sum* over `batch` (Objective::Scales::combine) to those
  /// of the model's parameters, and returns the terms without their graph. The model's state in
  /// `context` comes out detached: a next batch's gradients end there.
  BatchLoss add_gradients(const GradientTask& task, const Batch& batch,
                          ForwardContext& context) const;

  /// The names that it logs by `context.log()`, where it LogsValues (logs_values.h). A strategy
  /// that holds another declares the other's names, too.
  std::vector<std::string> log_names() const;

  /// Whether it takes a batch in parts: documents that combine it with a loss that is no sum over
  /// rows are refused. A strategy that holds another asks that one, too.
  bool splits_batch() const;

 private:
  virtual bool do_splits_batch() const { return false; }
  virtual BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                                     ForwardContext& context) const = 0;
};

/// Forward, loss, backward: the building block of strategies, and the default without one.
BatchLoss back_propagate(const GradientTask& task, const Batch& batch, ForwardContext& context);

/// Adds gradients of one part of a batch, as GradientStrategy::add_gradients() does.
using PartWork =
    std::function<BatchLoss(const GradientTask& task, const Batch& part, ForwardContext& context)>;

/// Calls `work` with one part of `batch` after the other, `parts` of nearly equal size, or one per
/// row if there are fewer rows. Terms are combined as for the whole batch; each part's context is
/// derived from `context`, and its rows pass their state on to the same part of the next batch.
/// Returns the losses, added up. Throws UsageError for an objective that is not additive.
///
/// A strategy that calls it returns true from do_splits_batch().
BatchLoss add_gradients_in_parts(const GradientTask& task, const Batch& batch,
                                 ForwardContext& context, std::int64_t parts, const PartWork& work);

/// While it lives, forward passes with this context have gradients through one time step only:
/// ForwardContext::truncates_bptt(). The context outlives it. Scopes nest.
class TruncatingBptt {
 public:
  explicit TruncatingBptt(ForwardContext& context);
  ~TruncatingBptt();
  TruncatingBptt(const TruncatingBptt&) = delete;
  TruncatingBptt& operator=(const TruncatingBptt&) = delete;

 private:
  ForwardContext& context_;
  bool before_;
};

}  // namespace treadle
