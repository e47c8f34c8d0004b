#pragma once

#include <treadle/core/training/training_workflow.h>
#include <treadle/engine/run_context.h>
#include <treadle/engine/session.h>

#include "session/progress.h"

namespace treadle::engine {

/// Shared by the parts of a session, which owns all of it.
struct SessionParts {
  const SessionSetup& setup;
  RunContext& context;
  const LoopNeeds& needs;
  TrainingStep& step;
  Progress& progress;
};

}  // namespace treadle::engine
