#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/host/run/training_curve.h>

namespace treadle::internal {

class HistoryLine;

/// history.csv: one row an epoch of each training. Rows arrive in whatever order parallel folds
/// finish their epochs; finish() puts them in the order of trainings.
class HistoryFile final : public RunObserver {
 public:
  explicit HistoryFile(std::filesystem::path path);

  /// Drops the rows of `fit` after its epoch `epochs`: a resumed training writes them again.
  void cut_back(const std::string& fit, std::int64_t epochs);
  /// The rows of `fit` up to its epoch `epochs`, as a file of their own: what a checkpoint keeps.
  std::string text_of(const std::string& fit, std::int64_t epochs) const;
  /// Puts back what text_of() gave, where the file has other rows of `fit`; says whether it had.
  bool restore(const std::string& fit, const std::string& text);
  /// Rewrites the file in the order of `fits`; rows of others are damage.
  void finish(const std::vector<std::string>& fits);
  /// Makes the rows so far survive a power failure.
  void sync();
  /// The rows of a file, by training, in the order of their first rows; the file is left as it is.
  static std::vector<TrainingCurve> read(const std::filesystem::path& path);
  /// All rows, by training, for the report.
  std::vector<TrainingCurve> curves(const std::vector<std::string>& fits) const;

 private:
  struct Row {
    std::string fit;
    EpochSummary summary;
  };
  struct Unopened {};
  HistoryFile(std::filesystem::path path, Unopened) : path_(std::move(path)) {}

  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  enum class Damage { kIsPassedOver, kIsAnError };
  /// Reads the rows; false when the last line was cut off.
  bool load(std::istream& file, Damage damage);
  Row row_of(const HistoryLine& line, std::size_t columns) const;
  void adopt_columns(const HistoryFile& other);
  void drop_empty_columns();
  void rewrite();
  std::string header() const;
  std::string line(const Row& row) const;

  std::filesystem::path path_;
  std::deque<Row> rows_;  // grows without a copy of all: it has every epoch of a search
  std::vector<std::pair<std::string, Direction>> metrics_;
  std::vector<std::string> logged_;
  bool has_decisions_ = false;
  std::unique_ptr<AppendFile> file_;
};

/// The summary under the names that history.csv has for its values, and without their directions,
/// which it does not keep.
EpochSummary as_in_history(EpochSummary summary);

}  // namespace treadle::internal
