// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/training/fits_targets.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_session.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle {

EvaluationWeights::~EvaluationWeights() = default;
FitsTargets::~FitsTargets() = default;
GradientStrategy::~GradientStrategy() = default;
Loss::~Loss() = default;
NamesRules::~NamesRules() = default;
Optimizer::~Optimizer() = default;
TrainingCallback::~TrainingCallback() = default;
TrainingControl::~TrainingControl() = default;
TrainingSession::~TrainingSession() = default;
TrainingWorkflow::~TrainingWorkflow() = default;

}  // namespace treadle
