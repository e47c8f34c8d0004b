#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "run_records.h"
#include "terminal.h"

/// What `runs list` and `runs compare` print.
namespace treadle::cli {

std::string run_listing(const std::vector<RunRecord>& runs, const Terminal& terminal);
nlohmann::json run_listing_json(const std::vector<RunRecord>& runs);

/// Runs side by side: a row for each, with its numbers and those keys of the documents that are not
/// the same in all of them.
struct Comparison {
  std::vector<std::string> numbers;  ///< "loss", then metrics, "epochs", "time"
  std::vector<std::string> keys;     ///< "optimizer.learning_rate"; a list is one value
  struct Row {
    std::string run;
    std::vector<nlohmann::json> values;  ///< of numbers, then of keys; null where there is none
  };
  std::vector<Row> rows;

  std::string text(const Terminal& terminal) const;
  std::string csv() const;
  nlohmann::json json() const;
};

/// `sort` names a number or a key, or is empty. The best comes first where a direction is better,
/// else the smallest; runs without the value come last. Throws UsageError with a near miss for a
/// name that no run has.
Comparison compare_runs(const std::vector<RunRecord>& runs, const std::string& sort);

}  // namespace treadle::cli
