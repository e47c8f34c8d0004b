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
#include <treadle/base/epoch_summary.h>
#include <treadle/host/record/training_curve.h>

namespace treadle {

class HistoryLine;

/// history.csv: one row an epoch of each training. Rows arrive in whatever order parallel folds
/// finish their epochs; finish() puts them in the order of trainings.
class HistoryFile {
 public:
  enum class Damage { kIsPassedOver, kIsAnError };

  explicit HistoryFile(std::filesystem::path path);

  /// The row of a further epoch of `fit`.
  void add(const std::string& fit, const EpochSummary& epoch);
  /// Drops the rows of `fit` after its epoch `epochs`: a resumed training writes them again.
  void cut_back(const std::string& fit, std::int64_t epochs);
  /// The rows of `fit` up to its epoch `epochs`, as a file of their own, for a checkpoint.
  std::string text_of(const std::string& fit, std::int64_t epochs) const;
  /// Puts back what text_of() gave, if the file has other rows of `fit`; returns whether it had.
  bool restore(const std::string& fit, const std::string& text);
  /// Rewrites the file in the order of `fits`; rows of others are damage.
  void finish(const std::vector<std::string>& fits);
  /// Makes the rows so far survive a power failure.
  void sync();
  /// The rows of a file in their order; the file is left as it is, and may be written by a run. Of
  /// a file that is not there, none. Damage that is an error is a StorageError with its line.
  static std::vector<HistoryRow> read(const std::filesystem::path& path,
                                      Damage damage = Damage::kIsAnError);
  /// All rows, by training, for the report.
  std::vector<TrainingCurve> curves(const std::vector<std::string>& fits) const;

 private:
  using Row = HistoryRow;
  struct Unopened {};
  HistoryFile(std::filesystem::path path, Unopened) : path_(std::move(path)) {}

  /// Reads the rows; false when the last line was cut off.
  bool load(std::istream& file, Damage damage);
  Row row_of(const HistoryLine& line, std::size_t columns) const;
  void adopt_columns(const HistoryFile& other);
  /// Whether there were new ones.
  bool take_columns(const EpochSummary& epoch);
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

}  // namespace treadle
