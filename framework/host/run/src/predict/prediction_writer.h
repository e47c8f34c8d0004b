#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::internal {

/// The shortest text that reads back as the same number in the precision it was computed in; more
/// digits would be invented.
std::string number_text(double value, at::ScalarType computed_in);

/// Writes predictions as CSV: a row per position of a target, so per row of the data where the
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

  /// `inputs`: as the transforms leave them; they have the lengths of padded rows. Borrows `file`
  /// and `targets`.
  PredictionWriter(FileWriter& file, const std::vector<TargetSpec>& targets,
                   const std::vector<PortSpec>& inputs, Contents contents = Contents::kAll);

  /// Columns of the data to write beside the predictions, with a text for each of its rows.
  void keep(std::vector<std::string> names, std::vector<std::vector<std::string>> texts);

  /// Columns that say what the row at a position is: its series, its time. `texts` adds a text for
  /// each of `names`.
  using Labels =
      std::function<void(std::int64_t row, std::int64_t position, std::vector<std::string>& texts)>;
  void label(std::vector<std::string> names, Labels labels);

  /// Writes nothing where no prediction is among the contents.
  void write(const Predictions& predictions, const Batch& batch);
  /// Positions written so far at which quantiles of a target are not in their order.
  std::int64_t crossed() const { return crossed_; }
  /// Whether anything was written.
  bool has_written() const { return has_header_; }

 private:
  /// By their columns' names, those that are known.
  using Uncertainties = std::vector<std::pair<const char*, at::Tensor>>;
  static Uncertainties uncertainties_of(const Prediction& prediction);

  /// A prediction as it is written: converted once for a batch, not for each position.
  struct Shown {
    Shown(const Prediction& prediction, TargetKind kind);

    at::Tensor values;    // float64 [B, positions..., width]
    at::Tensor decision;  // as the prediction has it
    at::Tensor decided;   // int64 [B, positions...] of classes, [B, positions..., C] of labels
    std::vector<at::Tensor> extras;
    std::vector<at::Tensor> samples;
    Uncertainties uncertainties;  // of classes and distributions [B, positions...]
    at::ScalarType computed_in;
  };

  std::string column(std::size_t target, const std::string& what) const;
  /// Whether there is a column for each value of the prediction.
  bool shows_values(const TargetSpec& target) const;
  bool shows_decisions(const TargetSpec& target, const at::Tensor& decision) const;
  bool shows_rows() const;
  std::vector<std::string> predicted_columns(const Predictions& predictions) const;
  void write_header(const std::vector<std::string>& columns);
  at::Tensor real_positions(const Batch& batch, at::IntArrayRef sizes) const;
  void add_labels(std::int64_t row, std::int64_t position, std::string& text) const;
  void add_target(std::size_t target, const Shown& shown, std::int64_t place,
                  std::string& text) const;

  static void add_uncertainties(const Shown& shown, std::int64_t place, std::string& text);

  FileWriter& file_;
  const std::vector<TargetSpec>& targets_;
  const Contents contents_;
  std::optional<std::size_t> lengths_;  // the input with them
  std::vector<std::string> kept_names_;
  std::vector<std::vector<std::string>> kept_;  // by column, row
  std::vector<std::string> label_names_;
  Labels labels_;
  std::int64_t crossed_ = 0;
  bool has_header_ = false;  // its columns depend on what is predicted
};

}  // namespace treadle::internal
