#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/core/batch.h>
#include <treadle/core/data_spec.h>
#include <treadle/core/predictions.h>

namespace treadle::internal {

/// Writes predictions as CSV: a row per position of a target, so per row of the data where the
/// targets have no positions of their own. Padding has no row.
class PredictionWriter {
 public:
  /// `inputs`: as the transforms leave them; they have the lengths of padded rows. Borrows `file`
  /// and `targets`.
  PredictionWriter(FileWriter& file, const std::vector<TargetSpec>& targets,
                   const std::vector<PortSpec>& inputs);

  /// Columns of the data to write beside the predictions, with a text for each of its rows.
  void keep(std::vector<std::string> names, std::vector<std::vector<std::string>> texts);

  /// Columns that say what the row at a position is: its series, its time. `texts` adds a text for
  /// each of `names`.
  using Labels =
      std::function<void(std::int64_t row, std::int64_t position, std::vector<std::string>& texts)>;
  void label(std::vector<std::string> names, Labels labels);

  void write(const Predictions& predictions, const Batch& batch);

 private:
  /// A prediction as it is written: converted once for a batch, not for each position.
  struct Shown {
    explicit Shown(const Prediction& prediction);

    at::Tensor values;  // float64 [B, positions..., width]
    std::vector<at::Tensor> extras;
    std::vector<at::Tensor> samples;
    at::ScalarType computed_in;
  };

  std::string column(std::size_t target, const std::string& what) const;
  std::vector<std::string> predicted_columns(const Predictions& predictions) const;
  void write_header(const Predictions& predictions);
  at::Tensor real_positions(const Batch& batch, at::IntArrayRef sizes) const;
  void add_labels(std::int64_t row, std::int64_t position, std::string& text) const;
  void add_target(std::size_t target, const Shown& shown, std::int64_t place,
                  std::string& text) const;

  FileWriter& file_;
  const std::vector<TargetSpec>& targets_;
  std::optional<std::size_t> lengths_;  // the input with them
  std::vector<std::string> kept_names_;
  std::vector<std::vector<std::string>> kept_;  // by column, row
  std::vector<std::string> label_names_;
  Labels labels_;
  std::string header_;  // until it is written: its columns depend on what is predicted
};

}  // namespace treadle::internal
