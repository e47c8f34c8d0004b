#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/host/catalog/latency_model.h>
#include <treadle/host/run/runtime.h>
#include <treadle/search/pruner.h>
#include <treadle/search/search_space.h>
#include <treadle/search/study_storage.h>
#include <treadle/search/tuner.h>

#include "search/settings/initial_points.h"

namespace treadle::internal {

/// A number that a trial must keep within bounds.
struct ConstraintSettings {
  std::string name;  ///< as an objective has it
  std::optional<double> min;
  std::optional<double> max;
};

/// The document's `search.ensemble`.
struct EnsembleSettings {
  std::int64_t size = 1;     ///< how often a trial is added, so at most so many members
  std::int64_t initial = 1;  ///< so many of the best trials are members before any other
  bool is_stacked = false;   ///< predictions are pooled by fit_stacking(), not by their mean
  std::string objective;     ///< the name of a metric
};

/// The document's `search`.
struct SearchSettings {
  SearchSpace space;
  std::shared_ptr<const Tuner> tuner;
  std::string tuner_name;
  std::shared_ptr<const Pruner> pruner = {};  ///< null: every trial is trained to its end
  std::string pruner_name = {};
  bool pruner_copies = false;  ///< trials of it begin with the checkpoints of others
  /// "val_loss", "parameter_count", "flops", "latency", or names of metrics.
  std::vector<std::string> objectives;
  std::vector<ConstraintSettings> constraints = {};
  std::vector<GivenPoint> initial = {};       ///< of the first trials
  std::int64_t trials = 0;                    ///< at most: a grid may have fewer points
  std::optional<std::int64_t> patience = {};  ///< trials without a new best that end the search
  std::int64_t parallel = 1;  ///< how many jobs a decision does not see the results of
  bool asynchronous = false;  ///< decisions see whatever has ended
  std::int64_t keep = 0;      ///< how many of the best trials keep their weights
  std::optional<EnsembleSettings> ensemble = {};
  std::shared_ptr<StudyStorage> storage = {};  ///< null: one process searches
  std::string study = {};                      ///< its name there
  double lease = 60;                           ///< seconds
  std::optional<double> seconds = {};          ///< wall time for the whole search
  std::optional<std::int64_t> memory = {};     ///< bytes that the process may use
  LatencyModel machine = {};                   ///< by which a "latency" is computed
  std::vector<std::string> notes = {};  ///< what its author may not have in mind, a sentence each

  /// Whether an objective or a constraint is about the cost of a forward pass.
  bool needs_cost() const;
};

/// Nothing where the document has no `search`. Throws a DocumentError for a space that is none, and
/// for values of it, at the ends of each range and each choice, that no document may have.
std::optional<SearchSettings> search_of(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The document of a trial: the run's, with the values of a point and without its `search`.
ResolvedWorkflow trial_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                const SearchSpace& space, const Point& point);

/// Throws a DocumentError at a place of the run's document.
[[noreturn]] void fail_in_search(const ResolvedWorkflow& workflow, const std::string& pointer,
                                 const std::string& message);

/// "8GiB" in bytes; nothing for what is no size.
std::optional<std::int64_t> parse_bytes(const std::string& text);

}  // namespace treadle::internal
