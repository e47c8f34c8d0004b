#include "predict/restored_model.h"

#include <algorithm>
#include <exception>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/prepares_for_inference.h>
#include <treadle/core/model/weights.h>
#include <treadle/engine/dropout_mode.h>
#include <treadle/engine/thread_budget.h>

#include "fit/fit.h"
#include "resources/run_device.h"
#include "resources/run_precision.h"

namespace treadle::internal {
namespace {

/// The document of a model that was trained where there is autocast, to be used where there is
/// none: its parameters are float32.
ResolvedWorkflow usable_here(const Runtime& runtime, ResolvedWorkflow workflow) {
  const Precision precision = precision_of(workflow);
  if (precision.autocast && !why_not(precision, find_device(runtime, workflow)).empty()) {
    workflow.precision = "float32";
    workflow.resolved.at("precision") = workflow.precision;
  }
  return workflow;
}

/// How many rows have so many samples in some memory.
std::int64_t rows_within_memory(const std::vector<TargetSpec>& targets, std::int64_t samples) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  std::int64_t numbers = 0;
  for (const TargetSpec& target : targets)
    numbers += engine::elements_of_row(target.shape);
  const auto bytes = static_cast<std::int64_t>(sizeof(double));
  return kBytes / std::max<std::int64_t>(samples * numbers * bytes, 1);
}

}  // namespace

RestoredModel::RestoredModel(const Runtime& runtime, SavedModel stored, Use use)
    : runtime(runtime),
      saved(std::move(stored.preprocessing)),
      dataset(data_spec_from_json(saved.value("data_spec"))),
      components(runtime, usable_here(runtime, std::move(stored.workflow)), dataset),
      losses(components.loss_terms()) {
  losses.load_from(saved);
  metrics.load_from(saved);
  transforms = components.make_transforms();
  load_transforms(transforms, saved);
  groups = KnownGroups(transform_list(), saved);
  preparation = preparation_of(components.data_spec());
  model_spec = components.model_spec(preparation.spec());
  model_spec.is_step_by_step = use == Use::kStepByStep;
  objective.emplace(losses.objective(preparation.spec()));
  model = components.make_model(model_spec);
  StateDict weights;
  for (const auto& [name, tensor] : stored.weights)
    weights.put(name, tensor);
  load_module_state(*model, weights);
  within_memory_of(components.device(), [&] { model->to(components.device().device()); });
  model->eval();
  if (!stored.outputs.empty()) {  // else the model of a fold, or a member
    outputs = OutputStages(runtime, components.workflow(), components.data_spec().targets);
    outputs.load_state(stored.outputs);
  }
  auto* const prepares = dynamic_cast<PreparesForInference*>(model.get());
  if (prepares != nullptr && use == Use::kWholeBatches)
    prepares->prepare_for_inference();
}

std::vector<const Transform*> RestoredModel::transform_list() const {
  std::vector<const Transform*> list;
  for (const auto& transform : transforms)
    list.push_back(transform.get());
  return list;
}

engine::BatchPreparation RestoredModel::preparation_of(const DataSpec& spec,
                                                       at::Tensor groups) const {
  engine::PreparationOptions options = components.preparation();
  options.groups = std::move(groups);
  return {spec, transform_list(), options};
}

std::unique_ptr<DataProvider> RestoredModel::open(const std::string& data,
                                                  OpenRequest::Purpose purpose) const {
  auto provider = make_data_for(runtime, components.workflow(), data);
  provider->load_state(saved.part("data"));
  OpenRequest request;
  request.purpose = purpose;
  request.missing_inputs = purpose == OpenRequest::Purpose::kPredict &&
                           components.workflow().resolved.contains("sequence");
  for (const TargetSpec& target : components.data_spec().targets)
    request.target_kinds[target.name] = {target.kind};
  provider->open(request);
  return provider;
}

std::unique_ptr<SampleReader> RestoredModel::samples_of(const RowReader& rows) const {
  auto samples = make_samples(runtime, components.workflow(), rows);
  const std::vector<PortSpec>& trained = components.data_spec().inputs;
  for (std::size_t i = 0; samples != nullptr && i < samples->spec().inputs.size(); ++i) {
    const std::vector<Column>& columns = samples->spec().inputs[i].columns;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const bool is_new =
          columns[k].may_be_missing && (i >= trained.size() || k >= trained[i].columns.size() ||
                                        !trained[i].columns[k].may_be_missing);
      if (is_new) {
        throw DataError("values of column \"" + columns[k].name +
                        "\" are missing, which never happened in the training data; fill them "
                        "in the file");
      }
    }
  }
  return samples;
}

engine::PipelineOptions RestoredModel::pipeline_options(const FurtherPredictions& further) const {
  // Rows that are evaluated in one batch.
  constexpr std::int64_t kLeast = 32;
  constexpr std::int64_t kMost = 1024;
  const std::int64_t samples = further.samples != nullptr ? further.samples->count : 0;
  const std::int64_t most_with_samples =
      rows_within_memory(components.data_spec().targets, samples);
  const std::int64_t rows = engine::evaluation_batch(model_spec, kLeast, kMost);
  return {.batch_size = std::clamp<std::int64_t>(most_with_samples, 1, rows),
          .host_part_only = true,
          .staging = components.device().staging()};
}

engine::EvaluationSetup RestoredModel::setup(const engine::BatchPreparation& of_rows,
                                             const FurtherPredictions& further) const {
  engine::EvaluationSetup setup{
      model.get(), &*objective, &of_rows, nullptr, components.precision(), further.samples};
  if (further.dropout != nullptr)
    setup.model = dropout_model();
  setup.dropout = further.dropout;
  setup.with_uncertainty = further.uncertainty;
  return setup;
}

Model* RestoredModel::dropout_model() const {
  std::call_once(makes_dropout_model_, [&] {
    const std::shared_ptr<Model> made = components.make_model(model_spec);
    load_module_state(*made, module_state(*model));
    within_memory_of(components.device(), [&] { made->to(components.device().device()); });
    if (engine::set_dropout_mode(*made) > 0)
      dropout_model_ = made;
  });
  return dropout_model_.get();
}

void RestoredModel::run_within_memory(const std::function<void()>& work) const {
  engine::ThreadBudget budget;
  within_memory_of(components.device(), [&] { budget.run(work); });
}

Evaluation RestoredModel::evaluate(const EvaluatedRows& data, const RowList& rows,
                                   const Visit& visit, const FurtherPredictions& further) const {
  Evaluation totals;
  run_within_memory([&] {
    const engine::BatchPreparation of_rows =
        preparation_of(data.rows->spec(), groups.numbers_in(data));
    engine::BatchPipeline pipeline(*data.rows, rows, of_rows, pipeline_options(further),
                                   RandomStreams(0));
    const auto stream = pipeline.epoch(0);
    totals = engine::evaluate(setup(of_rows, further), *stream, {}, visit);
  });
  return totals;
}

void rethrow_about(const std::filesystem::path& saved) {
  try {
    throw;
  } catch (const StorageError& error) {
    const std::string what = error.what();
    const std::string name = saved.string();
    throw StorageError(what.find(name) == std::string::npos ? name + ": " + what : what);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // What a stranger's file holds may fail anywhere, in libtorch or as JSON.
    const std::string what = error.what();
    throw StorageError(saved.string() + ": holds a state that does not fit its document: " +
                       what.substr(0, what.find('\n')));
  }
}

}  // namespace treadle::internal
