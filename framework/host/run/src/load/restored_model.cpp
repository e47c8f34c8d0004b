#include "load/restored_model.h"

#include <exception>

#include <treadle/base/error.h>
#include <treadle/core/module_state.h>

#include "load/run_device.h"
#include "load/run_precision.h"
#include "session/fit.h"

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
