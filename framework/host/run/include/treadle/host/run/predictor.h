#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/data_spec.h>
#include <treadle/core/predictions.h>
#include <treadle/core/quantized_weights.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// A finished run's model, ready to be used: with the run's own transforms, class names and
/// columns.
///
/// Loads weights and fitted transforms; does not need the training data. Const
/// functions may be called from several threads.
class Predictor {
 public:
  /// `saved`: the folder of a run, or a file that export_model() wrote. `device`: where the model
  /// computes, as documents name it ("cpu", "cuda:1"), whatever it was trained on; results are on
  /// the CPU. Throws StorageError when `saved` is no finished run or is damaged, PluginError when a
  /// plugin that the run used is missing, DocumentError when there is no such device.
  static Predictor load(const Runtime& runtime, const std::filesystem::path& saved,
                        const std::string& device = "auto");
  ~Predictor();
  Predictor(Predictor&&) noexcept;

  /// What the model was trained on.
  const DataSpec& data_spec() const;
  /// Of the first target.
  const std::vector<std::string>& class_names() const {
    return data_spec().targets.front().class_names;
  }

  /// Predicts for rows: one tensor per input of data_spec(), [B, port.shape...], in the data's
  /// units; where the data has bytes, bytes or numbers. Returns one prediction per target. Throws a
  /// DataError with both shapes when an input has another one.
  Predictions predict(std::span<const at::Tensor> inputs) const;
  /// For a model of one input and one target: a table [B, F], columns in data_spec()'s order.
  Prediction predict(const at::Tensor& features) const;

  /// Predicts for a file of the kind the run was trained on; columns are matched by name, no target
  /// is needed. Writes a CSV: `row`, then `predicted` and one `p(<class>)` column each, or the
  /// target's name; with several targets "<target>/" in front. A target with positions (time steps,
  /// pixels) has a row per position. The columns of the file that `keep` names are copied behind
  /// `row`; one that is called like a column of the predictions is written as "<name> (data)". Of
  /// samples made of rows, `series` and `time` of what is predicted, where the data has them.
  /// Returns the number of rows of the data.
  std::int64_t predict_file(const std::filesystem::path& data, const std::filesystem::path& output,
                            const std::vector<std::string>& keep = {}) const;

  /// Continues each series of a file by `steps` steps after its last row, for a model of samples
  /// made of rows (windows). Beyond the model's horizon it is given what it has predicted, which is
  /// possible where its inputs are its targets. Writes a CSV: `row` counts the series from 0,
  /// `position` the steps; then `series` and `time`, where the data has them; then predictions as
  /// predict_file() has them. A series too short for a sample is an error, unless the sequence
  /// skips such series. Returns how many rows it wrote.
  std::int64_t continue_series(const std::filesystem::path& data,
                               const std::filesystem::path& output, std::int64_t steps) const;

  /// Evaluates the model on a file that has the target: {"loss", "metrics", "sample_count",
  /// "validation_time_seconds", "tables"} as in result.json's "validation".
  nlohmann::json evaluate_file(const std::filesystem::path& data) const;

 private:
  struct Impl;
  explicit Predictor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Writes the model of a finished run as one file with all that predicting needs: weights, the
/// document, fitted transforms and data dictionaries, and which plugins the run used. It is a
/// safetensors file. With a `dtype`, its floating-point parameters are in that dtype:
/// quantized_weights.h. Throws StorageError when the folder holds no such run, a weight cannot be
/// in that dtype, or the file cannot be written.
void export_model(const std::filesystem::path& run_folder, const std::filesystem::path& file,
                  std::optional<WeightDtype> dtype = std::nullopt);

}  // namespace treadle
