// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/model/abilities/acts_on_positions.h>
#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/begins_forward.h>
#include <treadle/core/model/abilities/chooses_execution.h>
#include <treadle/core/model/abilities/counts_forward.h>
#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/estimates_work.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/abilities/names_parts.h>
#include <treadle/core/model/abilities/names_references.h>
#include <treadle/core/model/abilities/prepares_for_inference.h>
#include <treadle/core/model/abilities/takes_absent.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/abilities/takes_weight.h>
#include <treadle/core/model/abilities/traced.h>
#include <treadle/core/model/abilities/works_step_by_step.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/model.h>

namespace treadle {

ActsOnPositions::~ActsOnPositions() = default;
AddsLosses::~AddsLosses() = default;
BeginsForward::~BeginsForward() = default;
ChoosesExecution::~ChoosesExecution() = default;
CountsForward::~CountsForward() = default;
DrawsInTraining::~DrawsInTraining() = default;
EstimatesWork::~EstimatesWork() = default;
GathersStatistics::~GathersStatistics() = default;
GraphBuilder::~GraphBuilder() = default;
KeepsState::~KeepsState() = default;
Layer::~Layer() = default;
LayerFactory::~LayerFactory() = default;
LogsValues::~LogsValues() = default;
Model::~Model() = default;
ModelProvider::~ModelProvider() = default;
NamesOutputs::~NamesOutputs() = default;
NamesParameterRoles::~NamesParameterRoles() = default;
NamesParts::~NamesParts() = default;
NamesReferences::~NamesReferences() = default;
PreparesForInference::~PreparesForInference() = default;
TakesAbsent::~TakesAbsent() = default;
TakesIndices::~TakesIndices() = default;
TakesWeight::~TakesWeight() = default;
Traced::~Traced() = default;
WorksStepByStep::~WorksStepByStep() = default;

NamesParameterRoles::Roles NamesParameterRoles::all(ParameterRole role,
                                                    std::initializer_list<at::Tensor> parameters) {
  Roles roles;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.defined())
      roles.emplace_back(parameter, role);
  }
  return roles;
}

}  // namespace treadle
