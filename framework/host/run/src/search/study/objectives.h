#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/history/run_observer.h>
#include <treadle/host/catalog/latency_model.h>
#include <treadle/host/record/search_result.h>

#include "components/document_components.h"
#include "fit/fit_planner.h"
#include "search/settings/search_settings.h"

namespace treadle::internal {

/// The objectives of a search: numbers of its trials' validation rows, the number of their
/// parameters, and the cost of their forward pass. Values here are minimized; those of a
/// metric that is better when it is higher are negated.
class Objectives {
 public:
  /// Whether an objective of this name is of a trial's training or network, and not a metric of
  /// its predictions.
  static bool is_of_training(const std::string& name);

  /// Throws a DocumentError for a number that no trial has, or that is better in no direction.
  Objectives(const SearchSettings& settings, const DocumentComponents& components);

  std::size_t size() const { return objectives_.size(); }
  std::size_t constraint_count() const { return bounds_.size(); }
  bool have_constraints() const { return !bounds_.empty(); }
  /// Whether results of fits must have their "forward_cost".
  bool need_cost() const { return need_cost_; }
  /// Of a trial whose folds have all completed: their means.
  std::vector<Number> values(const std::vector<CompletedFit>& folds) const;
  /// Each holds at or below 0.
  std::vector<Number> constraints(const std::vector<CompletedFit>& folds) const;
  /// The first objective after an epoch; nothing where the epoch was not validated.
  std::optional<Number> value_after(const EpochSummary& epoch) const;

  bool maximizes(std::size_t objective) const { return objectives_[objective].sign < 0; }
  /// In the direction of the document.
  double in_document(std::size_t objective, double value) const {
    return objectives_[objective].sign * value;
  }
  std::vector<SearchResult::Objective> record() const;

 private:
  struct Goal {
    std::string name;
    std::string column;  ///< its name in the history
    double sign = 1;     ///< -1: higher is better
  };
  /// The mean over the folds in which it is defined.
  Number mean_of(const std::vector<CompletedFit>& folds, const std::string& name) const;
  Number number_of(const CompletedFit& fit, const std::string& name) const;

  struct Bound {
    std::string name;
    double sign;   ///< of the number in the constraint
    double limit;  ///< added to it
  };

  std::vector<Goal> objectives_;
  std::vector<Bound> bounds_;
  LatencyModel machine_;
  bool need_cost_ = false;
};

}  // namespace treadle::internal
