#include "predict/explained_rows.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/base/random.h>
#include <treadle/host/explain/explanation.h>
#include <treadle/host/explain/row_pictures.h>
#include <treadle/host/run/explained_run.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/state_folder.h>

#include "components/document_metrics.h"
#include "predict/open_run.h"
#include "result/json_path.h"

// The library explain knows models as functions of rows. Here they are made: of each part of an
// open run the rows as they are before any transform, and its model with the run's outputs.

namespace treadle {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using internal::HeldOutPart;
using internal::OpenRun;
using internal::WholeModel;

/// Inputs that are in memory; of more, fewer rows are explained.
constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
constexpr const char* kInstead =
    "explain it on a file: workflow-runner evaluate RUN FILE --explain";

/// The settings of a document: of "explain" as an object.
struct Settings {
  std::int64_t rows = 2000;
  explain::ExplainSettings reasons;
};

Settings settings_of(const ResolvedWorkflow& workflow) {
  Settings settings;
  settings.reasons.seed = workflow.seed;
  const Json& given = internal::at_path(workflow.resolved, {"explain"});
  if (!given.is_object())
    return settings;
  settings.rows = given.value("rows", settings.rows);
  explain::ExplainSettings& reasons = settings.reasons;
  reasons.repeats = given.value("repeats", reasons.repeats);
  reasons.columns = given.value("columns", reasons.columns);
  reasons.listed_rows = given.value("listed_rows", reasons.listed_rows);
  reasons.shap.rows = given.value("shap_rows", reasons.shap.rows);
  reasons.shap.background_rows = given.value("background_rows", reasons.shap.background_rows);
  return settings;
}

void expect_fixed_targets(const DataSpec& spec) {
  for (const TargetSpec& target : spec.targets) {
    if (std::find(target.shape.begin(), target.shape.end(), kVaries) != target.shape.end()) {
      throw DataError("target " + quote_text(target.name) +
                      " has a length that varies from row to row, and reasons are given for "
                      "targets of one shape; leave \"explain\" out");
    }
  }
}

/// Columns of one kind that are made of one source column alone become one: its lags and itself.
std::vector<explain::ExplainedColumn> source_columns(const DataSpec& spec,
                                                     const ColumnOrigins* origins) {
  std::vector<explain::ExplainedColumn> columns = explain::columns_of(spec);
  if (origins == nullptr)
    return columns;
  std::vector<explain::ExplainedColumn> merged;
  std::vector<std::string> sources;
  for (explain::ExplainedColumn& column : columns) {
    const std::vector<ColumnOrigin> made_of = origins->of_input(column.name);
    const std::string source = made_of.size() == 1 ? made_of.front().column : std::string();
    const auto same =
        source.empty() ? sources.end() : std::find(sources.begin(), sources.end(), source);
    explain::ExplainedColumn* const earlier =
        same == sources.end() ? nullptr : &merged[static_cast<std::size_t>(same - sources.begin())];
    if (earlier == nullptr || earlier->is_category != column.is_category) {
      sources.push_back(source);
      merged.push_back(std::move(column));
      continue;
    }
    earlier->name = source;
    earlier->is_flat = false;
    earlier->places.insert(earlier->places.end(), column.places.begin(), column.places.end());
  }
  return merged;
}

/// A part of at most so many rows, each of which is in no part before it.
struct ChosenRows {
  const HeldOutPart* part;
  std::vector<std::int64_t> rows;
};

std::int64_t bytes_of_row(const DataSpec& spec) {
  std::int64_t bytes = 1;
  for (const PortSpec& port : spec.inputs)
    bytes += engine::elements_of_row(port.shape) * static_cast<std::int64_t>(sizeof(double));
  return bytes;
}

std::vector<ChosenRows> chosen_rows(const OpenRun& run, std::int64_t most, std::uint64_t seed) {
  std::set<std::int64_t> taken;
  std::vector<std::pair<std::size_t, std::int64_t>> all;
  for (std::size_t i = 0; i < run.parts.size(); ++i) {
    for (const std::int64_t row : run.parts[i].rows) {
      if (taken.insert(row).second)
        all.emplace_back(i, row);
    }
  }
  const auto count = static_cast<std::int64_t>(all.size());
  std::vector<std::int64_t> places(all.size());
  std::iota(places.begin(), places.end(), 0);
  if (count > most) {
    places = random_permutation(count, RandomStreams(seed).bits("explained rows"));
    places.resize(static_cast<std::size_t>(most));
    std::sort(places.begin(), places.end());
  }
  std::vector<ChosenRows> parts;
  for (const std::int64_t place : places) {
    const auto& [part, row] = all[static_cast<std::size_t>(place)];
    if (parts.empty() || parts.back().part != &run.parts[part])
      parts.push_back({&run.parts[part], {}});
    parts.back().rows.push_back(row);
  }
  return parts;
}

/// The first metric of the document for a target, put together over the models of parts.
explain::Measure measure_of(const OpenRun& run,
                            const std::vector<std::shared_ptr<const WholeModel>>& models,
                            const explain::ExplainedRows& rows, std::size_t target) {
  const auto metrics_of = [groups = run.evaluated.rows->groups()](const WholeModel& model) {
    std::vector<internal::Metric> metrics = make_metrics(model.components);
    model.metrics.use_in(metrics, groups);
    return metrics;
  };
  using Metrics = std::vector<internal::Metric>;
  const auto of_parts = std::make_shared<std::vector<Metrics>>();
  for (const auto& model : models)
    of_parts->push_back(metrics_of(*model));
  const auto joined = std::make_shared<Metrics>(metrics_of(*models.front()));
  std::size_t index = 0;
  const auto is_of_target = [&] { return (*joined)[index].target == target; };
  while (index < joined->size() && !is_of_target())
    ++index;
  if (index == joined->size())
    return explain::mean_loss(rows, target);
  const std::vector<MetricValue> values = (*joined)[index].view().compute().values;
  if (values.empty() || values.front().direction == Direction::kNone)
    return explain::mean_loss(rows, target);
  return {values.front().name, values.front().direction,
          [=, &rows](const std::vector<Predictions>& predictions) {
            const internal::Metric& all = (*joined)[index];
            all.computer->reset();
            for (std::size_t i = 0; i < predictions.size(); ++i) {
              const internal::Metric& part = (*of_parts)[i][index];
              part.computer->reset();
              part.view().update(predictions[i], rows.parts[i].rows);
              all.computer->merge(*part.computer);
            }
            return all.view().compute().values.front().value;
          }};
}

/// The decisions of the run that its validation rows took part in.
Json chosen_by(const RunResult& result) {
  Json chosen = Json::array();
  if (result.search)
    chosen.push_back("settings");
  const auto& folds = result.cross_validation;
  const auto any = [&](auto&& holds) {
    if (folds)
      return std::any_of(folds->fold_results.begin(), folds->fold_results.end(), holds);
    return holds(result.training);
  };
  if (any([](const FitResult& fit) { return fit.weights.on == "validation"; }))
    chosen.push_back("weights");
  if (any([](const FitResult& fit) { return !fit.stop_reason.empty(); }))
    chosen.push_back("epochs");
  return chosen;
}

/// The run's output stages behind the model of a fold.
void add_outputs(const Runtime& runtime, const fs::path& folder, WholeModel& model) {
  const ResolvedWorkflow& workflow = model.components.workflow();
  const fs::path saved = RunFolder::outputs_of(folder);
  if (!model.outputs.empty() || !internal::has_outputs(workflow) || !fs::is_directory(saved))
    return;
  model.outputs = internal::OutputStages(runtime, workflow, model.components.data_spec().targets);
  model.outputs.load_state(read_state_folder(saved));
}

Json explain_open(const Runtime& runtime, const OpenRun& run, const fs::path& folder,
                  const ResolvedWorkflow& workflow, const RunResult* result) {
  expect_fixed_targets(run.spec);
  const at::NoGradGuard no_gradients;
  const Settings settings = settings_of(workflow);
  explain::ExplainedRows rows{run.spec.targets, source_columns(run.spec, run.origins), {}};
  const std::int64_t most = std::min(settings.rows, kMostBytes / bytes_of_row(run.spec) + 1);
  std::vector<std::shared_ptr<const WholeModel>> models;
  bool have_validated = false;
  bool are_tested = false;
  for (const ChosenRows& chosen : chosen_rows(run, most, settings.reasons.seed)) {
    std::shared_ptr<WholeModel> model = chosen.part->model();
    add_outputs(runtime, folder, *model);
    have_validated = have_validated || chosen.part->have_validated;
    are_tested = are_tested || !chosen.part->have_validated;
    explain::ExplainedPart& part = rows.parts.emplace_back();
    part.name = chosen.part->name;
    run.evaluated.rows->gather(chosen.rows, part.rows);
    part.rows.original_targets = part.rows.targets;
    if (const at::Tensor groups = model->groups.numbers_in(run.evaluated); groups.defined())
      part.rows.groups = groups.index_select(0, part.rows.rows);
    part.predict = [model](const Batch& batch) { return model->predict_rows(batch); };
    models.push_back(std::move(model));
  }
  std::vector<explain::Measure> measures;
  for (std::size_t target = 0; target < rows.targets.size(); ++target)
    measures.push_back(measure_of(run, models, rows, target));
  const explain::RowTexts texts{
      [&](std::int64_t row) { return run.evaluated.rows->describe_row(row); },
      [&](const Batch& row) { return explain::picture_of(run.spec, row); }};
  Json reasons = explain::explain(rows, measures, texts, settings.reasons);
  const bool is_file = run.parts.front().name == internal::kPartOfFile;
  reasons["rows_from"] = is_file ? "file" : have_validated ? "validation" : "test";
  std::int64_t held_out = 0;
  for (const HeldOutPart& part : run.parts)
    held_out += static_cast<std::int64_t>(part.rows.size());
  reasons["rows_available"] = held_out;
  reasons["rows_chose"] = have_validated && result != nullptr ? chosen_by(*result) : Json::array();
  if (!is_file && !models.front()->outputs.empty() && run.parts.size() > 1)
    reasons["rows_chose"].push_back("outputs");
  return reasons;
}

}  // namespace

namespace internal {

bool explains(const ResolvedWorkflow& workflow) {
  const Json& given = at_path(workflow.resolved, {"explain"});
  return given.is_object() || given == true;
}

void expect_explainable(const DocumentComponents& components) {
  expect_fixed_targets(components.data_spec());
  explain::columns_of(components.data_spec());
  const std::vector<Fold>& folds = components.plan().folds;
  const bool holds_out = std::any_of(folds.begin(), folds.end(), [](const Fold& fold) {
    return !fold.validation.empty() || !fold.test.empty();
  });
  if (!holds_out) {
    throw DataError(
        "\"explain\" needs rows that the model is not trained on, and this validation leaves none; "
        "choose another validation, or leave \"explain\" out");
  }
}

Json explain_own_rows(const Runtime& runtime, const fs::path& folder,
                      const ResolvedWorkflow& workflow, const Dataset& dataset,
                      const RunResult& result) {
  // Borrowed: it outlives this call.
  const auto data = std::make_shared<OwnData>(
      runtime, workflow, std::shared_ptr<const Dataset>(std::shared_ptr<void>(), &dataset));
  const std::string device = text_at_path(workflow.resolved, {"resources", "device"});
  OpenRun run;
  run.name = folder.string();
  run.spec = dataset.spec();
  run.evaluated = dataset.evaluated();
  run.origins = dataset.provider().ask<ColumnOrigins>();
  run.parts = held_out_parts(runtime, folder, data, std::nullopt, device.empty() ? "auto" : device);
  return explain_open(runtime, run, folder, workflow, &result);
}

}  // namespace internal

Json explain_run(const Runtime& runtime, const fs::path& saved, const fs::path& data,
                 const std::string& device) {
  const bool is_file = fs::is_regular_file(saved);
  if (is_file && data.empty()) {
    throw UsageError(saved.string() + ": is a model without the rows that its run held out; " +
                     kInstead);
  }
  const ResolvedWorkflow workflow =
      is_file ? internal::read_saved_model(runtime, saved, device).workflow
              : internal::read_model_document(runtime, saved, device);
  internal::OpenData opened(runtime, kInstead);
  if (is_file) {
    const OpenRun run = internal::open_given(runtime, saved, data, std::nullopt, device, opened);
    return explain_open(runtime, run, saved, workflow, nullptr);
  }
  OpenRun run = data.empty()
                    ? internal::open_own(runtime, saved, std::nullopt, device, opened)
                    : internal::open_given(runtime, saved, data, std::nullopt, device, opened);
  std::ifstream file(RunFolder::result_of(saved));
  const RunResult result = run_result_from(parse_json(file), RunFolder::result_of(saved).string());
  return explain_open(runtime, run, saved, workflow, &result);
}

}  // namespace treadle
