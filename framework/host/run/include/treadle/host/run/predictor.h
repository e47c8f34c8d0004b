#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/validation/predictions.h>
#include <treadle/host/record/fit_result.h>
#include <treadle/host/run/exported_model.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// Samples from the distributions that a model predicts. They need a loss of a distribution
/// (gaussian_nll, student_t_nll, negative_binomial_nll, gaussian_mixture_nll) for every target.
///
/// The draws of a row are a function of the seed, of its number and of what the model predicts for
/// it, not of workers or of the rows beside it. Fewer samples are the first of more.
struct SampleOptions {
  std::int64_t count = 0;  ///< for each row; 0: none
  std::uint64_t seed = 0;

  static constexpr std::int64_t kMost = 100'000;
};

/// How uncertain predictions are, and why: see Prediction::Uncertainty.
///
/// An ensemble, of trials or of one model with the loss "ensemble", tells the aleatoric and the
/// epistemic part; one model with the loss of a distribution the aleatoric part alone. Any model
/// with dropout tells both by Monte Carlo dropout (Y. Gal and Z. Ghahramani, "Dropout as a Bayesian
/// Approximation", 2016): the prediction becomes the mean over `dropout_passes` passes in which
/// dropout draws, and batch norms use their running statistics. Draws are a function of the seed
/// and of the rows' numbers, not of workers.
struct UncertaintyOptions {
  bool is_requested = false;        ///< implied by passes
  std::int64_t dropout_passes = 0;  ///< at least 2; 0: the model predicts without draws
  std::uint64_t seed = 0;

  static constexpr std::int64_t kMostPasses = 10'000;
};

/// Further requests to Predictor::predict().
struct PredictOptions {
  SampleOptions samples = {};
  UncertaintyOptions uncertainty = {};
  /// The name of the group (series) of each row. Needed by a model whose transforms have statistics
  /// for each group.
  std::vector<std::string> groups = {};
};

/// The content of a file of predictions.
struct WrittenPredictions {
  std::int64_t rows = 0;
  /// Lines in which quantiles had to be put in order: a model whose quantiles are outputs of their
  /// own may let 0.1 be above 0.9.
  std::int64_t crossed = 0;
};

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

  /// The data that the model was trained on.
  const DataSpec& data_spec() const;
  /// Of the first target.
  const std::vector<std::string>& class_names() const {
    return data_spec().targets.front().class_names;
  }

  /// Predicts for rows: one tensor per input of data_spec(), [B, port.shape...], in the data's
  /// units; where the data has bytes, bytes or numbers. Returns one prediction per target. Throws a
  /// DataError with both shapes when an input has another one, a UsageError for samples of a model
  /// that predicts no distribution, and for an uncertainty that the model cannot tell.
  Predictions predict(std::span<const at::Tensor> inputs, const PredictOptions& options = {}) const;
  /// For a model of one input and one target: a table [B, F], columns in data_spec()'s order.
  Prediction predict(const at::Tensor& features, const PredictOptions& options = {}) const;

  /// Predicts for a file of the kind the run was trained on; columns are matched by name, no target
  /// is needed. Writes a CSV: `row`, then `predicted` and one `p(<class>)` column each, or the
  /// target's name; with several targets "<target>/" in front. A target with positions (time steps,
  /// pixels) has a row per position. The columns of the file that `keep` names are copied behind
  /// `row`; one that is called like a column of the predictions is written as "<name> (data)". Of
  /// samples made of rows, `series` and `time` of each prediction, where the data has them. With
  /// `samples`, columns "y.sample_0", "y.sample_1" … behind those of target y; with `uncertainty`,
  /// "total", "aleatoric" and "epistemic", "y.total" and so on for numbers, "total(<label>)" for
  /// labels, those that are known. Counts the rows of the data.
  WrittenPredictions predict_file(const std::string& data, const std::string& output,
                                  const std::vector<std::string>& keep = {},
                                  const SampleOptions& samples = {},
                                  const UncertaintyOptions& uncertainty = {}) const;

  /// Labels a file with the model's predictions, as data that another model can be trained on.
  /// Writes a CSV `targets`: the columns that `keep` names, then those of the targets by their own
  /// names, with the likeliest class, 0 or 1 for a label, and numbers and distributions as they are
  /// predicted. Where the model predicts more, `distribution` is a CSV of the kept columns and the
  /// rest: `p(<class>)` for each class or label, and quantiles ("y.q0.9"). A target with positions
  /// has `row` and `position` in front. Columns are matched and kept as in predict_file(). Returns
  /// the number of rows of the data.
  std::int64_t label_file(const std::string& data, const std::string& targets,
                          const std::string& distribution,
                          const std::vector<std::string>& keep = {}) const;

  /// Continues each series of a file by `steps` steps after its last row, for a model of samples
  /// made of rows (windows). Beyond the model's horizon it is given what it has predicted, which is
  /// possible where its inputs are its targets. Writes a CSV: `row` counts the series from 0,
  /// `position` the steps; then `series` and `time`, where the data has them; then predictions as
  /// predict_file() has them. A series too short for a sample is an error, unless the sequence
  /// skips such series. With `samples`, a column of samples is a path: beyond the horizon the model
  /// is given what was drawn for the same path, and mean and quantiles are those of the paths. An
  /// uncertainty is that of steps within the horizon. Counts the rows that it wrote.
  WrittenPredictions continue_series(const std::string& data, const std::string& output,
                                     std::int64_t steps, const SampleOptions& samples = {},
                                     const UncertaintyOptions& uncertainty = {}) const;

  /// Evaluates the model on a file that has the target.
  EvaluationResult evaluate_file(const std::string& data) const;

 private:
  struct Impl;
  explicit Predictor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle
