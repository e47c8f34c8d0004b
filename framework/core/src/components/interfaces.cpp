// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/batch_stream.h>
#include <treadle/core/contiguous_rows.h>
#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/device_backend.h>
#include <treadle/core/fits_targets.h>
#include <treadle/core/forward_cost.h>
#include <treadle/core/gradient_strategy.h>
#include <treadle/core/graph_builder.h>
#include <treadle/core/layer.h>
#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/local_times.h>
#include <treadle/core/loss.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/model_abilities.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/core/run_observer.h>
#include <treadle/core/source_columns.h>
#include <treadle/core/source_hash.h>
#include <treadle/core/table_profile.h>
#include <treadle/core/training_callback.h>
#include <treadle/core/training_workflow.h>
#include <treadle/core/transform.h>

namespace treadle {

BatchSource::~BatchSource() = default;
BatchStream::~BatchStream() = default;
BeginsForward::~BeginsForward() = default;
ComponentLoader::~ComponentLoader() = default;
ContiguousRows::~ContiguousRows() = default;
CountsForward::~CountsForward() = default;
WorksStepByStep::~WorksStepByStep() = default;
CrossValidator::~CrossValidator() = default;
DataProvider::~DataProvider() = default;
DeviceBackend::~DeviceBackend() = default;
FitsTargets::~FitsTargets() = default;
GradientStrategy::~GradientStrategy() = default;
GathersStatistics::~GathersStatistics() = default;
GraphBuilder::~GraphBuilder() = default;
Layer::~Layer() = default;
LayerFactory::~LayerFactory() = default;
Loss::~Loss() = default;
MetricComputer::~MetricComputer() = default;
Model::~Model() = default;
ModelProvider::~ModelProvider() = default;
NamesParts::~NamesParts() = default;
PreparesForInference::~PreparesForInference() = default;
EstimatesWork::~EstimatesWork() = default;
ChoosesExecution::~ChoosesExecution() = default;
NamesReferences::~NamesReferences() = default;
NamesOutputs::~NamesOutputs() = default;
Optimizer::~Optimizer() = default;
RowReader::~RowReader() = default;
RunObserver::~RunObserver() = default;
SourceColumns::~SourceColumns() = default;
SourceHash::~SourceHash() = default;
TableProfiler::~TableProfiler() = default;
LocalTimes::~LocalTimes() = default;
LogsValues::~LogsValues() = default;
Stateful::~Stateful() = default;
TakesAbsent::~TakesAbsent() = default;
KeepsState::~KeepsState() = default;
AddsLosses::~AddsLosses() = default;
TakesIndices::~TakesIndices() = default;
TakesWeight::~TakesWeight() = default;
ActsOnPositions::~ActsOnPositions() = default;
Traced::~Traced() = default;
TrainingCallback::~TrainingCallback() = default;
TrainingControl::~TrainingControl() = default;
TrainingSession::~TrainingSession() = default;
TrainingWorkflow::~TrainingWorkflow() = default;
Transform::~Transform() = default;

}  // namespace treadle
