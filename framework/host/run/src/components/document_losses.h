#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/objective.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The losses of a document, as they are before they have seen rows; see FittedLosses. Their const
/// functions may be called from several threads.
struct DocumentLosses {
  std::vector<std::unique_ptr<Loss>> losses;
  std::vector<Objective::Term> terms;  ///< borrow from `losses`

  /// Whether each is a sum over rows.
  bool are_additive() const;
};

/// Throws a DocumentError where a loss names no target of the data, or a target has no loss.
DocumentLosses make_losses(const Runtime& runtime, const ResolvedWorkflow& workflow,
                           const std::vector<TargetSpec>& targets);

/// Fails where the document cuts the batches of a loss that is no sum over rows.
void expect_whole_batches(const Runtime& runtime, const ResolvedWorkflow& workflow,
                          const std::vector<Objective::Term>& terms);
/// The same of one gradient strategy, made of `slot`, and a loss of that name.
void expect_whole_batches(const GradientStrategy& strategy, const Config& slot,
                          const std::string& loss);

}  // namespace treadle::internal
