#include "components/document_components.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/data/port_spec.h>
#include <treadle/core/validation/set_aside.h>

#include "components/document_metrics.h"
#include "document/document_slots.h"
#include "outputs/output_stages.h"
#include "outputs/rows_for_outputs.h"

// The make_...() functions are const and return fresh objects, since fits run at the same time.
// Shared by all fits are the losses, whose const functions are thread-safe, and the data.

namespace treadle::internal {

DocumentComponents::DocumentComponents(const Runtime& runtime, ResolvedWorkflow workflow,
                                       const Dataset& dataset, bool keeps_predictions)
    : DocumentComponents(runtime, settle(runtime, std::move(workflow), dataset), dataset,
                         keeps_predictions) {}

DocumentComponents::DocumentComponents(const Runtime& runtime, SettledWorkflow settled,
                                       const Dataset& dataset, bool keeps_predictions)
    : runtime_(runtime),
      settled_(std::move(settled)),
      dataset_(dataset),
      keeps_predictions_(keeps_predictions),
      losses_(make_losses(runtime_, settled_.workflow, dataset_.spec().targets)) {}

std::optional<engine::StreamInput> DocumentComponents::stream() const {
  if (!dataset_.is_stream())
    return std::nullopt;
  const TrainingPlan plan = training_plan();
  engine::StreamInput input;
  input.data = &dataset_.provider();
  input.first_row = dataset_.validation_rows();
  input.window_rows = std::max(plan.shuffle_buffer, plan.batch_size);
  return input;
}

bool DocumentComponents::has_open_batch_size() const {
  return !settled_.workflow.resolved.at("training").at("batch_size").is_number();
}

void DocumentComponents::set_batch_size(std::int64_t rows) {
  settled_.workflow.resolved.at("training").at("batch_size") = rows;
}

void DocumentComponents::settle_batch_size(std::int64_t rows, const std::string& why) {
  set_batch_size(rows);
  settled_.choices.push_back("batch size: " + std::to_string(rows) + " (" + why + ")");
}

const DeviceBackend* DocumentComponents::capture() const {
  const bool is_captured = settled_.workflow.resolved.at("resources").at("execution") == "captured";
  return is_captured ? settled_.device.backend.get() : nullptr;
}

std::size_t DocumentComponents::shards() const {
  return settled_.workflow.resolved.at("resources").at("shards").get<std::size_t>();
}

void DocumentComponents::make_plan() {
  if (dataset_.is_stream()) {
    if (has_outputs(settled_.workflow)) {
      throw DataError(
          "the training rows are only read in their order, and \"outputs\" learn from rows that "
          "are set aside; leave \"outputs\" out, or choose data that is read at random");
    }
    plan_ = dataset_.plan_of_stream();
    return;
  }
  if (settled_.workflow.resolved.contains("validation")) {
    plan_ = make_in<CrossValidator>(runtime_, settled_.workflow.slot("validation"), "validation")
                ->plan(split_request());
  } else {
    Fold all;
    all.name = "all";
    all.training = all_rows_but(rows().rows(), {});
    plan_.folds = {std::move(all)};
  }
  if (!has_outputs(settled_.workflow))
    return;
  const OutputStages stages(runtime_, settled_.workflow, data_spec().targets);
  const SplitRequest request = split_request();
  if (stages.need_folds())
    expect_folds_for_outputs(settled_.workflow, stages, request, plan_);
  set_rows_aside_for_outputs(settled_.workflow, request, plan_);
  expect_rows_for_outputs(stages, request, plan_);
}

bool DocumentComponents::outputs_need_groups() const {
  return has_outputs(settled_.workflow) &&
         OutputStages(runtime_, settled_.workflow, data_spec().targets).need_groups();
}

bool DocumentComponents::outputs_need_folds() const {
  return has_outputs(settled_.workflow) &&
         OutputStages(runtime_, settled_.workflow, data_spec().targets).need_folds();
}

bool DocumentComponents::keeps_predictions() const {
  // Numbers that are kept for nothing but predictions.csv.
  constexpr double kMost = 2e7;
  if (keeps_predictions_ || has_outputs(settled_.workflow))
    return true;
  if (!settled_.workflow.resolved.contains("validation") || dataset_.is_stream() ||
      !dataset_.has_rows() || settled_.workflow.resolved.contains("search"))
    return false;
  double numbers = 0;
  for (const TargetSpec& target : data_spec().targets) {
    double of_row =
        target.kind == TargetKind::kClasses ? static_cast<double>(target.class_count()) : 1;
    for (const std::int64_t size : target.shape) {
      if (size == kVaries)
        return false;
      of_row *= static_cast<double>(size);
    }
    numbers += of_row;
  }
  return numbers * static_cast<double>(rows().rows()) <= kMost;
}

SplitRequest DocumentComponents::split_request() const {
  const RowReader& rows = this->rows();
  SplitRequest request;
  request.rows = rows.rows();
  request.targets = rows.spec().targets;
  for (std::size_t target = 0; target < request.targets.size(); ++target) {
    const bool has_one_a_row = request.targets[target].positions().empty();
    request.target_values.push_back(has_one_a_row ? rows.targets(target) : at::Tensor());
  }
  request.groups = rows.groups();
  request.timestamps = rows.timestamps();
  request.label_ends = rows.label_ends();
  request.random = RandomStreams(settled_.workflow.seed).part("validation", 0);
  request.samples = dataset_.samples();
  request.data = &dataset_.source();
  request.columns = dataset_.columns();
  return request;
}

std::vector<std::unique_ptr<Transform>> DocumentComponents::make_transforms() const {
  return make_each<Transform>(runtime_, settled_.workflow, "transforms");
}

std::shared_ptr<Model> DocumentComponents::make_model(const ModelSpec& spec) const {
  std::shared_ptr<Model> model =
      make_in<ModelProvider>(runtime_, settled_.workflow.slot("model"), "model")->create(spec);
  model->prepare_for(settled_.precision);
  return model;
}

std::vector<std::string> DocumentComponents::choices() const {
  std::vector<std::string> choices = settled_.choices;
  for (std::string& missing : missing_report_metrics(*this))
    choices.push_back(std::move(missing));
  return choices;
}

ModelSpec DocumentComponents::model_spec(const DataSpec& transformed) const {
  const nlohmann::json& model = settled_.workflow.resolved.at("model").at("use");
  const bool takes_missing = runtime_.schemas()
                                 .find("model", model.get<std::string>())
                                 .schema->value("x-treadle-takes-missing-values", false);
  for (const PortSpec& port : transformed.inputs) {
    for (const Column& column : port.columns) {
      if (column.may_be_missing && !takes_missing) {
        throw DataError("column \"" + column.name +
                        "\" may have missing values, in these rows or in those to predict, and " +
                        model.dump() +
                        " takes none; add "
                        "{\"use\": \"impute\"} to \"transforms\"");
      }
    }
  }
  return {transformed.inputs, Objective(losses_.terms, transformed.targets).outputs(),
          transformed.targets, settled_.precision.parameters};
}

}  // namespace treadle::internal
