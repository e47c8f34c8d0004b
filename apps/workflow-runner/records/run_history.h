#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The history of a run as its folder has it, read without libtorch.
namespace treadle::cli {

/// The lines of history.csv that are complete: the run may still write it. Without the file it has
/// no lines.
class RunHistory {
 public:
  explicit RunHistory(const std::filesystem::path& folder);

  std::size_t size() const { return lines_.size(); }
  /// Empty where there is no such column.
  std::string text(std::size_t line, std::string_view column) const;
  std::optional<double> number(std::size_t line, std::string_view column) const;
  /// The columns of metrics, in their order.
  std::vector<std::string> metrics() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> lines_;
};

/// What validation rows came to after an epoch.
struct ValidatedEpoch {
  double updates = 0;
  double seconds = 0;                    ///< of the training so far
  std::map<std::string, double> values;  ///< "loss", and metrics by their names
};

/// The epochs of every fit that had validation rows, by its path; epochs that were not validated
/// are left out.
std::map<std::string, std::vector<ValidatedEpoch>> validated_epochs(const RunHistory& history);

}  // namespace treadle::cli
