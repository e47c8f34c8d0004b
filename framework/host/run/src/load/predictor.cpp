#include <treadle/host/run/predictor.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>

#include <treadle/base/atomic_file.h>
#include <treadle/core/group_names.h>
#include <treadle/core/module_state.h>
#include <treadle/core/source_columns.h>
#include <treadle/core/tensor_spec.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/engine/transformed_rows.h>

#include "evaluation/breakdowns.h"
#include "events/history_file.h"
#include "load/restored_model.h"
#include "load/run_device.h"
#include "load/target_units.h"
#include "report/result_json.h"
#include "session/fit.h"
#include "store/saved_model.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

// Rows that are evaluated in one batch.
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

/// Writes predictions as CSV: a row per position of a target, so per row of the data where the
/// targets have no positions of their own. Padding has no row.
class PredictionWriter {
 public:
  /// `inputs`: as the transforms leave them; they have the lengths of padded rows.
  PredictionWriter(FileWriter& file, const std::vector<TargetSpec>& targets,
                   const std::vector<PortSpec>& inputs)
      : file_(file), targets_(targets) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].role == Role::kLengths && inputs[i].of == targets.front().padded_like)
        lengths_ = i;
    }
    const std::size_t dimensions = targets.front().position_dimensions();
    for (const TargetSpec& target : targets) {
      if (target.positions() != targets.front().positions()) {
        throw UsageError("the targets \"" + targets.front().name + "\" and \"" + target.name +
                         "\" have different positions, so one CSV file cannot hold both; predict "
                         "from a program (treadle::Predictor)");
      }
    }
    header_ = "row";
    for (std::size_t i = 0; i < dimensions; ++i)
      header_ += dimensions == 1 ? ",position" : ",position." + std::to_string(i);
  }

  /// Columns of the data to write beside the predictions, with a text for each of its rows.
  void keep(std::vector<std::string> names, std::vector<std::vector<std::string>> texts) {
    kept_names_ = std::move(names);
    kept_ = std::move(texts);
  }

  void write(const Predictions& predictions, const Batch& batch) {
    if (!header_.empty())
      write_header(predictions);
    std::vector<Shown> shown;
    for (const Prediction& prediction : predictions)
      shown.emplace_back(prediction);
    const at::IntArrayRef sizes = shown.front().values.sizes();
    const at::IntArrayRef positions = sizes.slice(1, sizes.size() - 2);
    const std::int64_t per_row = c10::multiply_integers(positions);
    const at::Tensor real = real_positions(batch, sizes.slice(0, sizes.size() - 1));
    const std::int64_t* rows = batch.rows.data_ptr<std::int64_t>();
    std::string text;
    for (std::int64_t place = 0; place < sizes[0] * per_row; ++place) {
      if (real.defined() && !real.data_ptr<bool>()[place])
        continue;
      text += std::to_string(rows[place / per_row]);
      add_position(place % per_row, positions, text);
      for (const std::vector<std::string>& column : kept_)
        text += "," + csv_field(column.at(static_cast<std::size_t>(rows[place / per_row])));
      for (std::size_t target = 0; target < predictions.size(); ++target)
        add_target(target, shown[target], place, text);
      text += "\n";
    }
    file_.write(text);
  }

 private:
  /// A prediction as it is written: converted once for a batch, not for each position.
  struct Shown {
    explicit Shown(const Prediction& prediction)
        : values(wide(prediction.values)), computed_in(prediction.values.scalar_type()) {
      for (const Prediction::Extra& extra : prediction.extras)
        extras.push_back(wide(extra.values));
    }
    static at::Tensor wide(const at::Tensor& tensor) { return tensor.to(at::kDouble).contiguous(); }

    at::Tensor values;  // float64 [B, positions..., width]
    std::vector<at::Tensor> extras;
    at::ScalarType computed_in;
  };

  std::string column(std::size_t target, const std::string& what) const {
    return targets_.size() == 1 ? what : targets_[target].name + "/" + what;
  }

  std::vector<std::string> predicted_columns(const Predictions& predictions) const {
    std::vector<std::string> columns;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const TargetSpec& target = targets_[i];
      if (target.kind == TargetKind::kNumbers) {
        for (std::int64_t k = 0; k < target.width(); ++k) {
          const std::string name =
              target.width() == 1 ? target.name : target.name + "." + std::to_string(k);
          columns.push_back(name);
          for (const Prediction::Extra& extra : predictions[i].extras)
            columns.push_back(name + "." + extra.name);
        }
        continue;
      }
      if (target.kind == TargetKind::kClasses)
        columns.push_back(column(i, "predicted"));
      for (const std::string& name : target.class_names)
        columns.push_back(column(i, "p(" + name + ")"));
    }
    return columns;
  }

  void write_header(const Predictions& predictions) {
    const std::vector<std::string> columns = predicted_columns(predictions);
    for (const std::string& name : kept_names_) {
      const bool is_taken = std::find(columns.begin(), columns.end(), name) != columns.end();
      header_ += "," + csv_field(is_taken ? name + " (data)" : name);
    }
    for (const std::string& name : columns)
      header_ += "," + csv_field(name);
    file_.write(std::exchange(header_, {}) + "\n");
  }

  /// True where a position is no padding, [B, positions...]; undefined where none is.
  at::Tensor real_positions(const Batch& batch, at::IntArrayRef sizes) const {
    if (!lengths_)
      return {};
    at::Tensor real =
        at::arange(sizes[1], at::kLong).unsqueeze(0).lt(batch.inputs[*lengths_].unsqueeze(1));
    while (real.dim() < static_cast<std::int64_t>(sizes.size()))
      real = real.unsqueeze(-1);
    return real.expand(sizes).contiguous();
  }

  static void add_position(std::int64_t place, at::IntArrayRef positions, std::string& text) {
    std::vector<std::int64_t> index(positions.size());
    for (std::size_t i = positions.size(); i-- > 0; place /= positions[i])
      index[i] = place % positions[i];
    for (const std::int64_t at : index)
      text += "," + std::to_string(at);
  }

  void add_target(std::size_t target, const Shown& shown, std::int64_t place,
                  std::string& text) const {
    const std::int64_t width = shown.values.size(-1);
    const double* const here = shown.values.data_ptr<double>() + place * width;
    if (targets_[target].kind == TargetKind::kClasses) {
      const auto best = static_cast<std::size_t>(std::max_element(here, here + width) - here);
      text += "," + csv_field(targets_[target].class_names[best]);
    }
    for (std::int64_t k = 0; k < width; ++k) {
      text += "," + number_text(here[k], shown.computed_in);
      for (const at::Tensor& extra : shown.extras)
        text += "," + number_text(extra.data_ptr<double>()[place * width + k], shown.computed_in);
    }
  }

  FileWriter& file_;
  const std::vector<TargetSpec>& targets_;
  std::optional<std::size_t> lengths_;  // the input with them
  std::vector<std::string> kept_names_;
  std::vector<std::vector<std::string>> kept_;  // by column, row
  std::string header_;  // until it is written: its columns depend on what is predicted
};

/// Throws a DataError unless these are rows as `port` has them.
void expect_rows(const PortSpec& port, const at::Tensor& given) {
  std::vector<std::int64_t> expected{kVaries};
  expected.insert(expected.end(), port.shape.begin(), port.shape.end());
  bool fits = given.defined() && given.dim() == static_cast<std::int64_t>(expected.size());
  for (std::size_t i = 1; fits && i < expected.size(); ++i)
    fits = expected[i] == kVaries || given.size(static_cast<std::int64_t>(i)) == expected[i];
  if (fits)
    return;
  throw DataError("input \"" + port.name + "\": expected " +
                  TensorSpec(expected, port.dtype).text() + ", got " +
                  (given.defined() ? TensorSpec::of(given).text() : "nothing"));
}

}  // namespace

struct Predictor::Impl : internal::RestoredModel {
  Impl(const Runtime& runtime, internal::SavedModel stored)
      : RestoredModel(runtime, std::move(stored), Use::kWholeBatches) {}

  engine::PipelineOptions pipeline_options() const {
    return {.batch_size = engine::evaluation_batch(model_spec.inputs, kLeast, kMost),
            .host_part_only = true,
            .staging = components.device().staging()};
  }

  engine::EvaluationSetup setup(const engine::BatchPreparation& of_rows) const {
    return {model.get(), &*objective, &of_rows, nullptr, components.precision()};
  }

  /// `data`, with the run's dictionaries.
  std::unique_ptr<DataProvider> open(const fs::path& data, OpenRequest::Purpose purpose) const {
    auto provider = internal::make_data_for(runtime, components.workflow(), data);
    provider->load_state(saved.part("data"));
    OpenRequest request;
    request.purpose = purpose;
    request.dtype = components.precision().data();
    for (const TargetSpec& target : components.data_spec().targets)
      request.loss_targets[target.name] = target.kind;
    provider->open(request);
    return provider;
  }

  /// The document's metrics and the report's.
  std::vector<internal::Metric> metrics_for(const internal::EvaluatedRows& rows) const {
    std::vector<internal::Metric> all = components.make_metrics();
    const bool has_rows = rows.rows != nullptr;
    metrics.use_in(all, has_rows ? rows.rows->groups() : at::Tensor());
    std::vector<internal::Metric> report = components.make_report_metrics();
    std::move(report.begin(), report.end(), std::back_inserter(all));
    if (!has_rows)
      return all;
    std::vector<internal::Metric> parts = components.make_breakdowns(rows);
    std::vector<std::int64_t> every(static_cast<std::size_t>(rows.rows->rows()));
    std::iota(every.begin(), every.end(), 0);
    internal::ready_breakdowns(parts, metrics, rows, every);
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
    return all;
  }

  void run_within_memory(const std::function<void()>& work) const {
    engine::ThreadBudget budget;
    internal::within_memory_of(components.device(), [&] { budget.run(work); });
  }

  using Visit = std::function<void(const Predictions&, const Batch&)>;

  /// Lets what `visiting` makes for the rows see predictions for all rows of open data. Their
  /// EvaluatedRows are empty where they can only be read in order.
  engine::EvaluationTotals over_rows(
      const DataProvider& provider,
      const std::function<Visit(const internal::EvaluatedRows&)>& visiting) const {
    const auto* rows = provider.ask<RowReader>();
    internal::EvaluatedRows evaluated{rows, rows, provider.ask<GroupNames>()};
    std::unique_ptr<SampleReader> samples;
    if (rows == nullptr)
      return over_stream(provider, visiting(evaluated));
    if ((samples = internal::make_samples(runtime, components.workflow(), *rows)) != nullptr)
      evaluated.rows = rows = samples.get();
    const Visit visit = visiting(evaluated);
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows->rows()));
    std::iota(all.begin(), all.end(), 0);
    engine::EvaluationTotals totals;
    run_within_memory([&] {
      const engine::BatchPreparation of_rows = preparation_of(rows->spec());
      engine::BatchPipeline pipeline(*rows, std::move(all), of_rows, pipeline_options(),
                                     RandomStreams(0));
      const auto stream = pipeline.epoch(0);
      totals = engine::evaluate(setup(of_rows), *stream, {}, visit);
    });
    return totals;
  }

  /// The same for data that can only be read in order.
  engine::EvaluationTotals over_stream(
      const DataProvider& provider,
      const std::function<void(const Predictions&, const Batch&)>& visit) const {
    if (provider.stream_rows() == DataProvider::kEndless)
      throw DataError("the data has no end; predicting and evaluating need data that has one");
    engine::StreamInput input;
    input.data = &provider;
    input.dtype = components.precision().data();
    input.window_rows = std::max(pipeline_options().batch_size, std::int64_t{1024});
    engine::EvaluationTotals totals;
    run_within_memory([&] {
      const engine::BatchPreparation of_rows = preparation_of(provider.spec());
      engine::BatchPipeline pipeline(input, of_rows, pipeline_options(), RandomStreams(0));
      totals = engine::evaluate(setup(of_rows), *pipeline.epoch(0), {}, visit);
    });
    return totals;
  }
};

Predictor Predictor::load(const Runtime& runtime, const fs::path& saved,
                          const std::string& device) {
  return Predictor(internal::restored<Impl>(runtime, saved, device));
}

Predictor::Predictor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

const DataSpec& Predictor::data_spec() const {
  return impl_->components.data_spec();
}

Predictions Predictor::predict(std::span<const at::Tensor> inputs) const {
  const at::NoGradGuard no_gradients;
  const std::vector<PortSpec>& ports = data_spec().inputs;
  if (inputs.size() != ports.size()) {
    throw DataError("the model takes " + std::to_string(ports.size()) +
                    (ports.size() == 1 ? " input" : " inputs") + ", got " +
                    std::to_string(inputs.size()));
  }
  Batch batch;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    expect_rows(ports[i], inputs[i]);
    // Numbers may be given where the training had bytes: they need not be whole.
    const bool are_numbers =
        ports[i].dtype == at::kByte && at::isFloatingType(inputs[i].scalar_type());
    const at::ScalarType dtype =
        are_numbers ? impl_->components.precision().data() : ports[i].dtype;
    // A copy: transforms change rows in place.
    batch.inputs.push_back(inputs[i].to(dtype).clone(at::MemoryFormat::Contiguous));
  }
  batch.rows = at::arange(inputs.front().size(0), at::kLong);
  engine::BatchPreparation::Memory memory;
  impl_->preparation.before_transfer(batch, ApplyContext{}, memory);
  return internal::within_memory_of(impl_->components.device(), [&] {
    return engine::predict(impl_->setup(impl_->preparation), batch);
  });
}

Prediction Predictor::predict(const at::Tensor& features) const {
  if (data_spec().targets.size() != 1) {
    throw UsageError("the model predicts " + std::to_string(data_spec().targets.size()) +
                     " targets; pass its inputs as a list to get all of them");
  }
  return std::move(predict(std::span(&features, 1)).front());
}

std::int64_t Predictor::predict_file(const fs::path& data, const fs::path& output,
                                     const std::vector<std::string>& keep) const {
  std::int64_t rows = 0;
  write_file_atomically(output, [&](FileWriter& file) {
    PredictionWriter writer(file, data_spec().targets, impl_->model_spec.inputs);
    const auto provider = impl_->open(data, OpenRequest::Purpose::kPredict);
    if (!keep.empty() && impl_->components.workflow().resolved.contains("sequence")) {
      throw UsageError(
          "--keep copies columns of the data's rows, and the model of this run predicts samples "
          "made of several rows; leave --keep out");
    }
    if (!keep.empty()) {
      const auto* const source = provider->ask<SourceColumns>();
      if (source == nullptr) {
        throw UsageError("the columns of " + data.string() +
                         " cannot be kept: the data of this run has no columns with texts; leave "
                         "--keep out");
      }
      writer.keep(keep, source->texts(keep));
    }
    rows = impl_
               ->over_rows(*provider,
                           [&](const internal::EvaluatedRows&) -> Impl::Visit {
                             return [&](const Predictions& predictions, const Batch& batch) {
                               writer.write(predictions, batch);
                             };
                           })
               .rows;
  });
  return rows;
}

nlohmann::json Predictor::evaluate_file(const fs::path& data) const {
  const auto start = std::chrono::steady_clock::now();
  const auto provider = impl_->open(data, OpenRequest::Purpose::kEvaluate);
  std::vector<internal::Metric> metrics;
  const engine::EvaluationTotals totals =
      impl_->over_rows(*provider, [&](const internal::EvaluatedRows& rows) -> Impl::Visit {
        metrics = impl_->metrics_for(rows);
        return [&](const Predictions& predictions, const Batch& batch) {
          for (const internal::Metric& metric : metrics)
            metric.view().update(predictions, batch);
        };
      });
  engine::ValidationResult result;
  result.loss = totals.loss;
  result.sample_count = totals.rows;
  for (const internal::Metric& metric : metrics) {
    const MetricResult part = metric.view().compute();
    result.metrics.values.insert(result.metrics.values.end(), part.values.begin(),
                                 part.values.end());
    result.metrics.tables.insert(result.metrics.tables.end(), part.tables.begin(),
                                 part.tables.end());
  }
  result.validation_time_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  nlohmann::json evaluated = internal::to_json(result);
  evaluated["transformed_target"] = internal::change_targets(
      impl_->transform_list(), data_spec().targets, impl_->components.precision().data());
  return evaluated;
}

}  // namespace treadle
