#include <treadle/host/record/history_file.h>
#include <treadle/host/run/predictor.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>

#include <treadle/base/json_words.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/group_names.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/evaluation.h>
#include <treadle/engine/transformed_rows.h>

#include "components/document_metrics.h"
#include "data/series_times.h"
#include "data/target_units.h"
#include "evaluation/breakdowns.h"
#include "fit/fit.h"
#include "model/saved_model.h"
#include "predict/continued_forecast.h"
#include "predict/prediction_writer.h"
#include "predict/table_output.h"
#include "predict/uncertainty_requests.h"
#include "predict/whole_model.h"
#include "resources/run_device.h"
#include "result/fit_results.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

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

struct Predictor::Impl : internal::WholeModel {
  using WholeModel::WholeModel;

  /// How many series are continued at once: their windows and samples are in some memory.
  std::int64_t series_within_memory(std::int64_t lookback, std::int64_t steps,
                                    const SampleOptions& samples) const {
    constexpr std::int64_t kNumbers = std::int64_t{1} << 24;
    std::int64_t columns = 0;
    for (const PortSpec& port : components.data_spec().inputs)
      columns += port.shape.empty() || port.shape.back() == kVaries ? 1 : port.shape.back();
    const std::int64_t of_series = std::max<std::int64_t>(samples.count, 1) * (lookback + steps) *
                                   std::max<std::int64_t>(columns, 1);
    return std::max<std::int64_t>(kNumbers / of_series, 1);
  }

  /// Throws a UsageError unless so many samples can be drawn of each target, and the uncertainty
  /// is known.
  void expect_possible(const SampleOptions& samples, const UncertaintyOptions& uncertainty) const {
    internal::expect_uncertainty(uncertainty, samples, *this, is_ensemble());
    if (samples.count < 0 || samples.count > SampleOptions::kMost) {
      throw UsageError("the number of samples is from 1 to " +
                       std::to_string(SampleOptions::kMost) + ", got " +
                       std::to_string(samples.count));
    }
    if (samples.count > 0 && is_ensemble()) {
      throw UsageError(
          "the model is an ensemble, which pools the predictions of its members; it has no "
          "distribution to draw samples from");
    }
    for (std::size_t target = 0; samples.count > 0 && target < objective->targets().size();
         ++target) {
      const Loss* const loss = objective->predicts(target);
      if (loss == nullptr || loss->ask<DrawsSamples>() != nullptr)
        continue;
      throw UsageError("target " + quote_text(objective->targets()[target].name) +
                       " is predicted by " + loss->origin() +
                       ", which is no distribution to draw samples from; train with gaussian_nll, "
                       "student_t_nll, negative_binomial_nll or gaussian_mixture_nll, or predict "
                       "without samples");
    }
  }

  /// The document's metrics and the report's.
  std::vector<internal::Metric> metrics_for(const internal::EvaluatedRows& rows) const {
    std::vector<internal::Metric> all = make_metrics(components);
    const bool has_rows = rows.rows != nullptr;
    metrics.use_in(all, has_rows ? rows.rows->groups() : at::Tensor());
    std::vector<internal::Metric> report = make_report_metrics(components);
    std::move(report.begin(), report.end(), std::back_inserter(all));
    if (!has_rows)
      return all;
    std::vector<internal::Metric> parts = make_breakdowns(components, rows);
    internal::ready_breakdowns(parts, metrics, rows, RowList::range(0, rows.rows->rows()));
    std::move(parts.begin(), parts.end(), std::back_inserter(all));
    return all;
  }

  /// `visit` with what outputs make of the predictions.
  Visit with_outputs(Visit visit) const {
    if (outputs.empty())
      return visit;
    return [this, visit = std::move(visit)](const Predictions& predictions, const Batch& batch) {
      visit(outputs.apply(predictions, batch), batch);
    };
  }

  /// `visit` with the predictions of the ensemble, or with those of folds, for rows that are read
  /// again.
  Visit of_all_models(Visit visit, const RowReader& rows,
                      const internal::FurtherPredictions& further) const {
    if (has_folds()) {
      return [this, visit = std::move(visit), &rows](const Predictions& predictions,
                                                     const Batch& batch) {
        visit(with_folds(predictions, batch, rows), batch);
      };
    }
    if (!is_ensemble())
      return visit;
    return
        [this, visit = std::move(visit), &rows, further](const Predictions&, const Batch& batch) {
          const auto* const first = batch.rows.data_ptr<std::int64_t>();
          Batch read;
          rows.gather({first, static_cast<std::size_t>(batch.size())}, read);
          visit(pooled(read, further), batch);
        };
  }

  /// Gives each of `writers` the predictions for a file, with the columns that `keep` names.
  /// Returns the number of its rows.
  std::int64_t write_predictions(const std::string& data, const std::vector<std::string>& keep,
                                 const internal::FurtherPredictions& further,
                                 std::span<internal::PredictionWriter* const> writers) const;

  /// Lets what `visiting` makes for the rows see predictions for all rows of open data. Their
  /// EvaluatedRows are empty where they can only be read in order.
  Evaluation over_rows(const DataProvider& provider,
                       const std::function<Visit(const internal::EvaluatedRows&)>& visiting,
                       const internal::FurtherPredictions& further = {}) const {
    const auto* rows = provider.ask<RowReader>();
    internal::EvaluatedRows evaluated{rows, rows, provider.ask<GroupNames>()};
    std::unique_ptr<SampleReader> samples;
    if (rows == nullptr)
      return over_stream(provider, with_outputs(visiting(evaluated)), further);
    if ((samples = samples_of(*rows)) != nullptr)
      evaluated.rows = rows = samples.get();
    const Visit visit = of_all_models(with_outputs(visiting(evaluated)), *rows, further);
    // This model's own predictions are not used where there is an ensemble.
    return evaluate(evaluated, RowList::range(0, rows->rows()), visit,
                    is_ensemble() ? internal::FurtherPredictions{} : further);
  }

  /// The same for data that can only be read in order.
  Evaluation over_stream(const DataProvider& provider, const Visit& visit,
                         const internal::FurtherPredictions& further) const {
    if (provider.stream_rows() == DataProvider::kEndless)
      throw DataError("the data has no end; predicting and evaluating need data that has one");
    if (has_folds()) {
      throw DataError(
          "the data can only be read in order, and the outputs of this model predict each row "
          "with the models of its folds as well; give the rows in data that is read at random, "
          "such as a file");
    }
    engine::StreamInput input;
    input.data = &provider;
    input.window_rows = std::max(pipeline_options().batch_size, std::int64_t{1024});
    Evaluation totals;
    run_within_memory([&] {
      const engine::BatchPreparation of_rows = preparation_of(provider.spec());
      engine::BatchPipeline pipeline(input, of_rows, pipeline_options(further), RandomStreams(0));
      totals = engine::evaluate(setup(of_rows, further), *pipeline.epoch(0), {}, visit);
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

Predictions Predictor::predict(std::span<const at::Tensor> inputs,
                               const PredictOptions& options) const {
  const at::NoGradGuard no_gradients;
  impl_->expect_possible(options.samples, options.uncertainty);
  const internal::Requests requests(options.samples, options.uncertainty);
  const std::vector<PortSpec>& ports = data_spec().inputs;
  if (inputs.size() != ports.size()) {
    throw DataError("the model takes " + std::to_string(ports.size()) +
                    (ports.size() == 1 ? " input" : " inputs") + ", got " +
                    std::to_string(inputs.size()));
  }
  Batch batch;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    expect_rows(ports[i], inputs[i]);
    // Numbers are as exact as they were given, and need not be whole where the training had bytes.
    const bool takes_numbers = ports[i].dtype == at::kByte || at::isFloatingType(ports[i].dtype);
    const at::ScalarType given = inputs[i].scalar_type();
    const at::ScalarType dtype = !takes_numbers                ? ports[i].dtype
                                 : given == at::kDouble        ? at::kDouble
                                 : at::isFloatingType(given)   ? at::kFloat
                                 : ports[i].dtype == at::kByte ? at::kByte
                                                               : at::kDouble;
    // A copy: transforms change rows in place.
    batch.inputs.push_back(inputs[i].to(dtype).clone(at::MemoryFormat::Contiguous));
  }
  batch.rows = at::arange(inputs.front().size(0), at::kLong);
  batch.groups = impl_->groups.numbers_of(options.groups, batch.size());
  // Each member of an ensemble, and each fold, prepares the rows; draws of dropout are those of
  // batches.
  if (impl_->is_ensemble() || impl_->has_folds() || requests.dropout != nullptr)
    return impl_->predict_rows(batch, requests.further());
  engine::BatchPreparation::Memory memory;
  impl_->preparation.before_transfer(batch, ApplyContext{}, memory);
  return internal::within_memory_of(impl_->components.device(), [&] {
    return impl_->outputs.apply(
        engine::predict(impl_->setup(impl_->preparation, requests.further()), batch), batch);
  });
}

Prediction Predictor::predict(const at::Tensor& features, const PredictOptions& options) const {
  if (data_spec().targets.size() != 1) {
    throw UsageError("the model predicts " + std::to_string(data_spec().targets.size()) +
                     " targets; pass its inputs as a list to get all of them");
  }
  return std::move(predict(std::span(&features, 1), options).front());
}

namespace {

std::string series_name(const internal::EvaluatedRows& data, std::int64_t row) {
  const auto group = data.source->groups()[row].item<std::int64_t>();
  return data.names != nullptr ? data.names->name_of(group) : std::to_string(group);
}

/// The columns `series` and `time`, as far as the data has them. `rows_of` gives for each place the
/// rows of the data where its sample begins, and which it predicts.
template <typename RowsOf>
void add_series(const internal::EvaluatedRows& data, const internal::SeriesTimes& times,
                std::span<const internal::PredictionWriter::Place> places,
                internal::TableChunk& chunk, RowsOf&& rows_of) {
  const auto add = [&](const char* name, auto&& text_of) {
    std::vector<std::string> texts;
    texts.reserve(places.size());
    for (const internal::PredictionWriter::Place& place : places)
      texts.push_back(std::apply(text_of, rows_of(place)));
    chunk.add(name, std::move(texts));
  };
  if (data.source->groups().defined()) {
    add("series",
        [&](std::int64_t begin, std::int64_t /*predicted*/) { return series_name(data, begin); });
  }
  if (times.has_times()) {
    add("time",
        [&](std::int64_t begin, std::int64_t predicted) { return times.text(begin, predicted); });
  }
}

void label_samples(const internal::EvaluatedRows& data, internal::PredictionWriter& writer) {
  const SampleReader* const samples = data.rows->samples();
  if (samples == nullptr)
    return;
  const auto times = std::make_shared<const internal::SeriesTimes>(*data.source);
  writer.label([=](std::span<const internal::PredictionWriter::Place> places,
                   internal::TableChunk& chunk) {
    add_series(data, *times, places, chunk, [&](const internal::PredictionWriter::Place& place) {
      const SourceRows source = samples->source_rows(place.row);
      return std::pair{source.inputs.begin, source.targets.begin + place.position};
    });
  });
}

/// The last sample of each series, where it ends with the last row: that it is given, or that it
/// predicts, where columns known in advance are filled in for it.
std::vector<std::int64_t> last_samples(const SampleReader& samples,
                                       const std::vector<RowRange>& series) {
  std::vector<std::int64_t> chosen;
  std::int64_t sample = 0;
  for (const RowRange& one : series) {
    std::optional<std::int64_t> last;
    for (; sample < samples.rows() && samples.source_rows(sample).inputs.begin < one.end; ++sample)
      last = sample;
    if (!last)
      continue;
    const SourceRows rows = samples.source_rows(*last);
    if (rows.inputs.end == one.end || rows.targets.end == one.end)
      chosen.push_back(*last);
  }
  return chosen;
}

}  // namespace

WrittenPredictions Predictor::continue_series(const std::string& data, const std::string& output,
                                              std::int64_t steps, const SampleOptions& drawn,
                                              const UncertaintyOptions& uncertainty) const {
  TREADLE_EXPECTS(steps >= 1, "there is a step to predict");
  impl_->expect_possible(drawn, uncertainty);
  const internal::Requests requests(drawn, uncertainty);
  const auto provider = impl_->open(data, OpenRequest::Purpose::kPredict);
  const auto* const source = provider->ask<RowReader>();
  const std::unique_ptr<SampleReader> samples =
      source == nullptr ? nullptr : impl_->samples_of(*source);
  if (samples == nullptr) {
    throw UsageError(
        "the model of this run predicts rows, not the steps after a series: its document has no "
        "\"sequence\"; predict without a horizon");
  }
  const internal::EvaluatedRows evaluated{samples.get(), source, provider->ask<GroupNames>()};
  const internal::SeriesTimes times(*source);
  const std::vector<std::int64_t> chosen = last_samples(*samples, series_of(*source));
  if (chosen.empty())
    throw DataError(data + ": no sample ends with the last row of its series");
  const SourceRows first = samples->source_rows(chosen.front());
  const std::int64_t gap = first.targets.begin - first.inputs.end;
  if (gap < 0)
    throw UsageError("the model of this run labels rows that are there; it continues no series");

  const std::int64_t horizon = first.targets.size();
  std::vector<internal::PredictedNumber> columns;
  if (steps > horizon) {
    if (requests.uncertainty) {
      throw UsageError(
          "beyond its horizon a model is given what it has predicted, as if that were certain; "
          "predict at most " +
          std::to_string(horizon) + " steps with an uncertainty, or with samples, which are paths");
    }
    if (samples->spec().inputs.size() > 1) {
      throw UsageError(
          "beyond its horizon a model is given what it has predicted, and this one has "
          "a further input \"" +
          samples->spec().inputs[1].name + "\", which is not predicted; predict at most " +
          std::to_string(horizon) + " steps");
    }
    if (gap > 0) {
      throw UsageError("the model predicts from " + std::to_string(gap) +
                       " rows after the last on, so it cannot be given what it predicted; predict "
                       "at most " +
                       std::to_string(horizon) + " steps");
    }
    columns = internal::predicted_columns(
        *impl_->open(data, OpenRequest::Purpose::kEvaluate)->ask<RowReader>());
  }
  const internal::ContinuedForecast forecast(
      [&](const Batch& windows, const engine::DrawRequest* request) {
        internal::FurtherPredictions further = requests.further();
        further.samples = request;
        return impl_->predict_rows(windows, further);
      },
      horizon, std::move(columns));
  const at::Tensor groups = impl_->groups.numbers_in(evaluated);

  std::vector<TargetSpec> targets = data_spec().targets;
  for (TargetSpec& target : targets) {
    const std::int64_t width = target.kind == TargetKind::kClasses ? 0 : target.width();
    target.shape =
        width == 0 ? std::vector<std::int64_t>{steps} : std::vector<std::int64_t>{steps, width};
  }
  WrittenPredictions counted;
  internal::write_table(impl_->runtime, output, [&](TableWriter& table) {
    internal::PredictionWriter writer(table, targets, {});
    writer.label([&](std::span<const internal::PredictionWriter::Place> places,
                     internal::TableChunk& chunk) {
      add_series(evaluated, times, places, chunk,
                 [&](const internal::PredictionWriter::Place& place) {
                   const SourceRows rows =
                       samples->source_rows(chosen[static_cast<std::size_t>(place.row)]);
                   return std::pair{rows.inputs.begin, rows.targets.begin + place.position};
                 });
    });
    // Some series at a time: each has as many windows as samples.
    const auto count = static_cast<std::int64_t>(chosen.size());
    const std::int64_t at_once = impl_->series_within_memory(first.inputs.size(), steps, drawn);
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
      const std::int64_t end = std::min(begin + at_once, count);
      Batch windows;
      samples->gather(std::span(chosen).subspan(static_cast<std::size_t>(begin),
                                                static_cast<std::size_t>(end - begin)),
                      windows);
      windows.groups = groups.defined() ? groups.index_select(0, windows.rows) : groups;
      windows.rows = at::arange(begin, end, at::kLong);
      Batch written;
      written.rows = windows.rows;
      writer.write(forecast.of(std::move(windows), steps, drawn), written);
    }
    writer.close();
    counted.crossed = writer.crossed();
  });
  counted.rows = static_cast<std::int64_t>(chosen.size()) * steps;
  return counted;
}

std::int64_t Predictor::Impl::write_predictions(
    const std::string& data, const std::vector<std::string>& keep,
    const internal::FurtherPredictions& further,
    std::span<internal::PredictionWriter* const> writers) const {
  const auto provider = open(data, OpenRequest::Purpose::kPredict);
  if (!keep.empty() && components.workflow().resolved.contains("sequence")) {
    throw UsageError(
        "--keep copies columns of the data's rows, and the model of this run predicts samples "
        "made of several rows; leave --keep out");
  }
  if (!keep.empty()) {
    const auto* const source = provider->ask<SourceColumns>();
    if (source == nullptr) {
      throw UsageError("the columns of " + data +
                       " cannot be kept: the data of this run has no columns with texts; leave "
                       "--keep out");
    }
    const std::vector<std::vector<std::string>> texts = source->texts(keep);
    for (internal::PredictionWriter* const writer : writers)
      writer->keep(keep, texts);
  }
  const auto visiting = [&](const internal::EvaluatedRows& evaluated) -> Visit {
    for (internal::PredictionWriter* const writer : writers) {
      if (evaluated.rows != nullptr)
        label_samples(evaluated, *writer);
    }
    return [&](const Predictions& predictions, const Batch& batch) {
      for (internal::PredictionWriter* const writer : writers)
        writer->write(predictions, batch);
    };
  };
  return over_rows(*provider, visiting, further).rows;
}

WrittenPredictions Predictor::predict_file(const std::string& data, const std::string& output,
                                           const std::vector<std::string>& keep,
                                           const SampleOptions& samples,
                                           const UncertaintyOptions& uncertainty) const {
  impl_->expect_possible(samples, uncertainty);
  const internal::Requests requests(samples, uncertainty);
  WrittenPredictions written;
  internal::write_table(impl_->runtime, output, [&](TableWriter& table) {
    internal::PredictionWriter writer(table, data_spec().targets, impl_->model_spec.inputs);
    written.rows = impl_->write_predictions(data, keep, requests.further(), std::array{&writer});
    writer.close();
    written.crossed = writer.crossed();
  });
  return written;
}

std::int64_t Predictor::label_file(const std::string& data, const std::string& targets,
                                   const std::string& distribution,
                                   const std::vector<std::string>& keep) const {
  using Writer = internal::PredictionWriter;
  const std::vector<PortSpec>& inputs = impl_->model_spec.inputs;
  std::int64_t rows = 0;
  bool has_distribution = false;
  internal::write_table(impl_->runtime, distribution, [&](TableWriter& second) {
    Writer rest(second, data_spec().targets, inputs, Writer::Contents::kDistribution);
    internal::write_table(impl_->runtime, targets, [&](TableWriter& first) {
      Writer labels(first, data_spec().targets, inputs, Writer::Contents::kTargets);
      rows = impl_->write_predictions(data, keep, {}, std::array{&labels, &rest});
      labels.close();
    });
    rest.close();
    has_distribution = rest.has_written();
  });
  if (!has_distribution)
    fs::remove(distribution);
  return rows;
}

EvaluationResult Predictor::evaluate_file(const std::string& data) const {
  const auto start = std::chrono::steady_clock::now();
  const auto provider = impl_->open(data, OpenRequest::Purpose::kEvaluate);
  std::vector<internal::Metric> metrics;
  const Evaluation totals =
      impl_->over_rows(*provider, [&](const internal::EvaluatedRows& rows) -> Impl::Visit {
        metrics = impl_->metrics_for(rows);
        return [&](const Predictions& predictions, const Batch& batch) {
          for (const internal::Metric& metric : metrics)
            metric.view().update(predictions, batch);
        };
      });
  engine::ValidationResult result;
  result.loss = impl_->is_ensemble() ? Number::undefined(internal::kNoLossOfEnsemble) : totals.loss;
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
  EvaluationResult evaluated = internal::evaluation_result(result);
  evaluated.transformed_target = internal::change_targets(
      impl_->transform_list(), data_spec().targets, impl_->components.precision().data());
  return evaluated;
}

}  // namespace treadle
