#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "session/epoch_evaluation.h"
#include "session/rates.h"

namespace treadle::engine {

constexpr const char* kGradientNorm = "gradient_norm";
constexpr const char* kSkippedSteps = "skipped_steps";
constexpr const char* kLossScale = "loss_scale";

/// The names of the numbers in each row of a training's history, and which of them the validation
/// rows leave undefined. One training thread.
class HistoryNumbers {
 public:
  /// All outlive it.
  HistoryNumbers(const SessionParts& parts, const EpochEvaluation& evaluation, const Rates& rates);

  /// May evaluate some rows, to learn the names of the metrics.
  const std::vector<std::string>& names();
  /// This number decides something.
  void follow(const std::string& name) { followed_.insert(name); }
  /// Before the first step: a note for each followed number that no model can have, as AUC where
  /// all validation rows are of one class.
  void note_undefined();
  bool is_noted(const std::string& name) const { return undefined_.count(name) > 0; }

 private:
  std::vector<std::string> metric_names(BatchSource& rows);
  std::vector<MetricValue> undefined_now() const;

  const SessionParts parts_;
  const EpochEvaluation& evaluation_;
  const Rates& rates_;
  std::vector<std::string> names_;
  std::set<std::string> followed_;
  std::set<std::string> undefined_;        // of those, with a note
  std::optional<EpochSummary> first_row_;  // of the untrained model, of some validation rows
};

}  // namespace treadle::engine
