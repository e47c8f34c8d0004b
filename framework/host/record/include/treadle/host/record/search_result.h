#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/number.h>

namespace treadle {

/// A model that predicts in place of the best trial: a weighted mean of several. ensemble.json.
struct EnsembleResult {
  struct Member {
    std::string path;  ///< of its folder, in the run's
    std::int64_t trial = 0;
    nlohmann::json weight;  ///< a number, or one for each output
  };
  /// Means over the validation rows, of numbers over all of them: see Prediction::Uncertainty.
  /// Nothing where unknown.
  struct Uncertainty {
    std::optional<double> total;
    std::optional<double> aleatoric;
    std::optional<double> epistemic;
  };
  std::string objective;
  Number validation;         ///< of the objective, on the validation rows
  std::string pool;          ///< what is averaged: "linear", of probabilities, or "logarithmic"
  nlohmann::json intercept;  ///< null: none
  std::vector<Member> members;
  /// Of the best trial alone, on the test rows; those of the ensemble are the run's. Empty without
  /// test rows.
  std::vector<MetricValue> best_trial_test = {};
  std::optional<Uncertainty> uncertainty = {};
};

/// The result of a hyperparameter search.
struct SearchResult {
  struct Objective {
    std::string name;
    bool maximizes = false;
  };
  /// Of the first objective, as the pruner saw it.
  struct Intermediate {
    std::int64_t step = 0;  ///< epoch
    Number value;
  };
  struct Ended {
    std::string reason;  ///< "trials", "space", "time", "patience", "pruner"
    std::string text;    ///< the same in a few words
  };
  struct Trial {
    std::int64_t number = 0;
    std::string state;                ///< "complete", "pruned", "paused", "failed", "cancelled"
    nlohmann::json params;            ///< values by path
    std::vector<Number> values;       ///< of a complete one, by objective
    std::vector<Number> constraints;  ///< at most 0 where they hold
    std::vector<Intermediate> intermediate;
    std::string error;                        ///< of a failed one
    std::optional<std::int64_t> copied_from;  ///< the trial whose weights it began with
  };

  std::string tuner;
  std::string pruner;  ///< empty: none
  std::vector<Objective> objectives;
  std::int64_t best_trial = -1;  ///< its number; -1: none is complete
  /// Of several objectives: the trials that no other one dominates.
  std::optional<std::vector<std::int64_t>> pareto_trials;
  std::vector<Trial> trials;
  nlohmann::json space;  ///< as in the document
  Ended ended;
  bool asynchronous = false;
  bool wants_ensemble = false;
  std::optional<EnsembleResult> ensemble;

  const Trial* find(std::int64_t number) const;
};

nlohmann::json to_json(const SearchResult& result);

/// As ensemble.json.
nlohmann::json to_json(const EnsembleResult& result);
/// As fit_result_from().
EnsembleResult ensemble_result_from(const nlohmann::json& stored, const std::string& place);

}  // namespace treadle
