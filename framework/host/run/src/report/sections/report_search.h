#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/report.h>

#include "report/ped_anova.h"
#include "report/search_record.h"

namespace treadle::report {

/// What a report has of a search. Numbers are in the document's own direction: a maximized metric
/// is not negated.
class SearchReport {
 public:
  SearchReport(SearchRecord search, const ReportInput& input);

  /// The overview, the frames of the charts, the importances, the Pareto front and the trials.
  std::string html() const;
  /// What report_search.js draws: the trials by column.
  nlohmann::json data() const;

 private:
  bool has_several_objectives() const { return search_.objectives.size() > 1; }
  bool has_curves() const;

  std::string overview_card() const;
  std::string best_card() const;
  std::string history_card() const;
  std::string importance_card() const;
  std::string importance_table(const Importances& importances) const;
  std::string pareto_cards() const;
  std::string parallel_card() const;
  std::string slices_card() const;
  std::string learning_card() const;
  std::string trials_card() const;
  std::string objective_picker(const std::string& chart) const;

  SearchRecord search_;
  std::vector<Importances> importances_;  // by objective; empty where nothing can be compared
  std::vector<std::size_t> order_;        // dimensions by their first importance
  std::vector<std::vector<SearchRecord::Curve>> curves_;  // by objective, trial
};

}  // namespace treadle::report
