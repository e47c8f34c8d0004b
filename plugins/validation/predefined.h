#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

namespace treadle::validation {

/// `predefined`: the part of each row stands in a column of the data, or in a file with a line per
/// row. Either words: train, validation, test, or nothing for a row that is left out; or, as
/// scikit-learn's PredefinedSplit has it, the number of the fold in which the row validates, -1 for
/// one that always trains.
///
/// A sample belongs to the part of its target rows; one whose target rows are of several parts is
/// left out.
class Predefined final : public CrossValidator {
 public:
  explicit Predefined(const Config& config);
  ~Predefined() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  /// One text per row of the data.
  std::vector<std::string> labels(const SplitRequest& request) const;
  std::string place_of(const SplitRequest& request, std::int64_t row) const;

  std::optional<std::string> column_;
  std::optional<std::filesystem::path> path_;
  std::optional<bool> refit_;  // nothing: where there are folds
};

}  // namespace treadle::validation
