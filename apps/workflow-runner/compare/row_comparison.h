#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/compared_predictions.h>

#include <treadle/host/run/row_disagreement.h>
#include "terminal/terminal.h"

namespace treadle::cli {

/// All targets of some runs.
class RowComparison {
 public:
  /// Pairs with a lower coverage are left out of text and JSON.
  RowComparison(ComparedPredictions predictions, std::vector<std::string> runs,
                double min_coverage);

  /// `file`: that the rows are of, in place of the runs' own data; or nothing.
  std::string text(const std::string& file, const Terminal& terminal) const;
  nlohmann::json json() const;
  /// A line for each row: its number, the target, whether the runs disagree, and each run's
  /// prediction; of classes also its probability and 1 where it is right, else 0.
  std::string csv() const;

 private:
  std::string rows_text(const std::string& file) const;
  std::string class_text(std::size_t target, const Terminal& terminal) const;
  std::string number_text(std::size_t target, const Terminal& terminal) const;
  nlohmann::json class_json(std::size_t target) const;
  nlohmann::json number_json(std::size_t target) const;

  ComparedPredictions predictions_;
  std::vector<std::string> runs_;
  double min_coverage_;
  /// One of the two for each target.
  std::vector<std::optional<ClassDisagreement>> classes_;
  std::vector<std::optional<NumberDisagreement>> numbers_;
};

}  // namespace treadle::cli
