#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/table_writer.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::internal {

/// Rows of a table in the making: columns in their order, each with as many values.
struct TableChunk {
  std::vector<TableWriter::Column> columns;
  std::vector<TableWriter::Values> values;

  void add(std::string name, TableWriter::Values of_rows);
};

/// Writes predictions as a table: a row per position of a target, so per row of the data where the
/// targets have no positions of their own. Padding has no row.
class PredictionWriter {
 public:
  /// The columns of predictions. The last two make a table that a model can be trained on, so they
  /// have the row's number only where a row of the data has several lines.
  enum class Contents {
    kAll,          ///< for people: the row's number, then all that is predicted
    kTargets,      ///< the targets as data has them: the likeliest class, 0 or 1 for a label
    kDistribution  ///< the rest: probabilities of classes and labels, quantiles
  };

  /// `inputs`: as the transforms leave them; they have the lengths of padded rows. Borrows `table`
  /// and `targets`.
  PredictionWriter(TableWriter& table, const std::vector<TargetSpec>& targets,
                   const std::vector<PortSpec>& inputs, Contents contents = Contents::kAll);

  /// Columns of the data to write beside the predictions, with a text for each of its rows.
  void keep(std::vector<std::string> names, std::vector<std::vector<std::string>> texts);

  /// A row of the table.
  struct Place {
    std::int64_t row = 0;       ///< of the data
    std::int64_t position = 0;  ///< flat, in the row
    std::int64_t in_batch = 0;  ///< row of the batch * positions + position
  };
  /// Adds columns that say what the row at each place is: its series, its time. The same ones each
  /// time.
  using Labels = std::function<void(std::span<const Place> places, TableChunk& chunk)>;
  void label(Labels labels) { labels_ = std::move(labels); }

  /// Writes nothing where no prediction is among the contents.
  void write(const Predictions& predictions, const Batch& batch);
  /// Ends the table, where anything was written.
  void close();

  /// Positions written so far at which quantiles of a target are not in their order.
  std::int64_t crossed() const { return crossed_; }
  bool has_written() const { return has_written_; }

 private:
  struct Shown;

  std::string column(std::size_t target, const std::string& what) const;
  bool shows_values(const TargetSpec& target) const;
  bool shows_decisions(const TargetSpec& target, const at::Tensor& decision) const;
  bool shows_rows() const;
  at::Tensor real_positions(const Batch& batch, at::IntArrayRef sizes) const;
  std::vector<Place> places_of(const Batch& batch, at::IntArrayRef sizes,
                               const at::Tensor& real) const;
  void add_places(std::span<const Place> places, at::IntArrayRef positions,
                  TableChunk& chunk) const;
  void add_kept(std::span<const Place> places, const TableChunk& predicted,
                TableChunk& chunk) const;
  void add_target(std::size_t target, const Shown& shown, std::span<const Place> places,
                  TableChunk& chunk) const;
  void add_numbers(std::size_t target, const Shown& shown, std::span<const Place> places,
                   TableChunk& chunk) const;
  void add_classes(std::size_t target, const Shown& shown, std::span<const Place> places,
                   TableChunk& chunk) const;

  TableWriter& table_;
  const std::vector<TargetSpec>& targets_;
  const Contents contents_;
  std::optional<std::size_t> lengths_;  // the input with them
  std::vector<std::string> kept_names_;
  std::vector<std::vector<std::string>> kept_;  // by column, row
  Labels labels_;
  std::int64_t crossed_ = 0;
  bool has_written_ = false;  // the columns depend on what is predicted
};

}  // namespace treadle::internal
