#include <treadle/host/run/predictor.h>

#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <numeric>

#include <ATen/ops/argmax.h>
#include <c10/core/GradMode.h>

#include <treadle/base/atomic_file.h>
#include <treadle/core/module_state.h>
#include <treadle/core/safetensors.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/transformed_rows.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/state_folder.h>

#include "ingredients.h"
#include "result_json.h"
#include "run_files.h"
#include "trial.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

// Rows that are judged in one batch.
constexpr std::int64_t kLeast = 32;
constexpr std::int64_t kMost = 1024;

/// Quoted as RFC 4180 asks where a name needs it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"')
      quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

/// The shortest text that reads back as the same number in the precision it was computed in; more
/// digits would be invented.
std::string number_text(double value, at::ScalarType computed_in) {
  std::array<char, 32> digits;
  char* const begin = digits.data();
  char* const limit = begin + digits.size();
  const auto end = computed_in == at::kDouble
                       ? std::to_chars(begin, limit, value).ptr
                       : std::to_chars(begin, limit, static_cast<float>(value)).ptr;
  return {begin, end};
}

/// Writes predictions as CSV rows.
class PredictionWriter {
 public:
  PredictionWriter(FileWriter& file, const TargetSpec& target) : file_(file), target_(target) {
    std::string header = "row";
    if (target.kind == TargetKind::kClasses) {
      header += ",predicted";
      for (const std::string& name : target.class_names)
        header += "," + csv_field("p(" + name + ")");
    } else {
      for (std::int64_t i = 0; i < target.width; ++i) {
        header += "," + csv_field(target.width == 1 ? target.name
                                                    : target.name + "." + std::to_string(i));
      }
    }
    file_.write(header + "\n");
  }

  void write(const Predictions& predictions, const Batch& batch) {
    const at::Tensor values = predictions.values.to(at::kDouble).contiguous();
    const std::int64_t width = values.size(1);
    const double* data = values.data_ptr<double>();
    const std::int64_t* rows = batch.rows.data_ptr<std::int64_t>();
    std::string text;
    for (std::int64_t i = 0; i < values.size(0); ++i) {
      const double* row = data + i * width;
      text += std::to_string(rows[i]);
      if (target_.kind == TargetKind::kClasses) {
        const auto best = static_cast<std::size_t>(std::max_element(row, row + width) - row);
        text += "," + csv_field(target_.class_names[best]);
      }
      for (std::int64_t k = 0; k < width; ++k) {
        text += "," + number_text(row[k], predictions.values.scalar_type());
      }
      text += "\n";
    }
    file_.write(text);
  }

 private:
  FileWriter& file_;
  const TargetSpec& target_;
};

}  // namespace

struct Predictor::Impl {
  Impl(const Runtime& runtime, const fs::path& folder)
      : runtime(runtime),
        saved(read_state_folder(folder / "preprocessing")),
        ingredients(runtime, runtime.read(folder / "workflow.json")) {
    ingredients.recall_data(data_spec_from_json(saved.value("data_spec")));
    transforms = ingredients.make_transforms();
    internal::load_transforms(transforms, saved);
    DataSpec spec = ingredients.data_spec();
    for (const auto& transform : transforms)
      spec = transform->output_spec(spec);
    model_spec = ingredients.model_spec(spec);
    model = ingredients.make_model(model_spec);
    StateDict weights;
    for (const auto& [name, tensor] : read_safetensors(folder / "model.safetensors").tensors) {
      weights.put(name, tensor);
    }
    load_module_state(*model, weights);
    model->eval();
    if (auto* prepares = dynamic_cast<PreparesForInference*>(model.get()))
      prepares->prepare_for_inference();
  }

  std::vector<const Transform*> transform_list() const {
    std::vector<const Transform*> list;
    for (const auto& transform : transforms)
      list.push_back(transform.get());
    return list;
  }

  engine::EvaluationSetup setup() const {
    return {model.get(), &ingredients.loss(), model_spec.outputs.size(), transform_list()};
  }

  /// Opens `data` with the run's dictionaries and lets `visit` see predictions for all of its rows.
  engine::EvaluationTotals over_file(
      const fs::path& data, OpenRequest::Purpose purpose,
      const std::function<void(const Predictions&, const Batch&)>& visit) const {
    const auto provider = internal::make_data_for(runtime, ingredients.workflow(), data);
    provider->load_state(saved.part("data"));
    OpenRequest request;
    request.purpose = purpose;
    request.dtype = ingredients.dtype();
    request.loss_target = ingredients.data_spec().target.kind;
    request.task = ingredients.is_classification() ? Task::kClassification : Task::kRegression;
    provider->open(request);
    const auto* rows = provider->ask<RowReader>();
    TREADLE_EXPECTS(rows != nullptr, "a file is read at random here");
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows->rows()));
    std::iota(all.begin(), all.end(), 0);
    engine::EvaluationTotals totals;
    const std::int64_t batch =
        engine::evaluation_batch(model_spec.inputs, model_spec.dtype, kLeast, kMost);
    engine::ThreadBudget budget;
    budget.run([&] {
      engine::BatchPipeline pipeline(*rows, std::move(all), transform_list(),
                                     engine::PipelineOptions{batch}, RandomStreams(0));
      const auto stream = pipeline.epoch(0);
      totals = engine::evaluate(setup(), *stream, {}, visit);
    });
    return totals;
  }

  const Runtime& runtime;
  StateDict saved;
  internal::Ingredients ingredients;
  std::vector<std::unique_ptr<Transform>> transforms;
  ModelSpec model_spec;
  std::shared_ptr<Model> model;
};

Predictor Predictor::load(const Runtime& runtime, const fs::path& run_folder) {
  if (!fs::exists(run_folder / "workflow.json")) {
    throw StorageError(run_folder.string() +
                       ": is not the folder of a run: it has no workflow.json");
  }
  if (!fs::exists(run_folder / "model.safetensors")) {
    throw StorageError(run_folder.string() +
                       ": has no model: the run is not finished (continue it with "
                       "\"workflow-runner resume\"), or it only scored folds (\"refit\": false)");
  }
  return Predictor(std::make_unique<Impl>(runtime, run_folder));
}

Predictor::Predictor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

const DataSpec& Predictor::data_spec() const {
  return impl_->ingredients.data_spec();
}

Predictions Predictor::predict(const at::Tensor& features) const {
  const at::NoGradGuard no_gradients;
  const PortSpec& port = data_spec().inputs.front();
  TREADLE_EXPECTS(features.dim() == static_cast<std::int64_t>(port.shape.size()) + 1 &&
                      features.sizes().slice(1).equals(port.shape),
                  "predict() takes rows shaped like the training data's");
  Batch batch;
  batch.inputs = {features.to(impl_->ingredients.dtype()).clone()};
  batch.rows = at::Tensor();
  for (const auto& transform : impl_->transforms)
    transform->apply(batch, ApplyContext{});
  Outputs outputs(impl_->model_spec.outputs.size());
  ForwardContext context;
  (*impl_->model)(batch.inputs, outputs, context);
  Predictions predictions = impl_->ingredients.loss().predictions(outputs);
  if (predictions.kind == TargetKind::kNumbers) {
    for (auto transform = impl_->transforms.rbegin(); transform != impl_->transforms.rend();
         ++transform) {
      predictions.values = (*transform)->invert(predictions.values);
    }
  }
  return predictions;
}

std::int64_t Predictor::predict_file(const fs::path& data, const fs::path& output) const {
  std::int64_t rows = 0;
  write_file_atomically(output, [&](FileWriter& file) {
    PredictionWriter writer(file, data_spec().target);
    rows = impl_
               ->over_file(data, OpenRequest::Purpose::kPredict,
                           [&](const Predictions& predictions, const Batch& batch) {
                             writer.write(predictions, batch);
                           })
               .rows;
  });
  return rows;
}

nlohmann::json Predictor::evaluate_file(const fs::path& data) const {
  const auto start = std::chrono::steady_clock::now();
  auto metrics = impl_->ingredients.make_metrics();
  for (auto& extra : impl_->ingredients.make_report_metrics())
    metrics.push_back(std::move(extra));
  const engine::EvaluationTotals totals =
      impl_->over_file(data, OpenRequest::Purpose::kEvaluate,
                       [&](const Predictions& predictions, const Batch& batch) {
                         for (const auto& metric : metrics)
                           metric->update(predictions, batch);
                       });
  ValidationResult result;
  result.loss = totals.loss();
  result.sample_count = totals.rows;
  for (const auto& metric : metrics) {
    const MetricResult part = metric->compute();
    result.metrics.values.insert(result.metrics.values.end(), part.values.begin(),
                                 part.values.end());
    result.metrics.tables.insert(result.metrics.tables.end(), part.tables.begin(),
                                 part.tables.end());
  }
  result.validation_time_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return internal::to_json(result);
}

}  // namespace treadle
