#pragma once

/// Everything a plugin may need, in one include. Plugins that care for their compile time include
/// the headers of the interfaces they implement instead, and <treadle/plugin.h>.

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/batch.h>
#include <treadle/core/batch_stream.h>
#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/data_spec.h>
#include <treadle/core/gradient_strategy.h>
#include <treadle/core/graph_builder.h>
#include <treadle/core/layer.h>
#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/loss.h>
#include <treadle/core/matrix_rows.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/model_abilities.h>
#include <treadle/core/model_spec.h>
#include <treadle/core/module_state.h>
#include <treadle/core/observed_values.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/parameter_arena.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/core/predictions.h>
#include <treadle/core/row_problems.h>
#include <treadle/core/row_reader.h>
#include <treadle/core/run_context.h>
#include <treadle/core/run_observer.h>
#include <treadle/core/state_dict.h>
#include <treadle/core/task_random.h>
#include <treadle/core/tensor_spec.h>
#include <treadle/core/training_workflow.h>
#include <treadle/core/transform.h>
#include <treadle/core/weights.h>
#include <treadle/plan/folding.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>
#include <treadle/plan/ops.h>
#include <treadle/plugin.h>
