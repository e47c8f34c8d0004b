#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "plan_program.h"

namespace treadle::graph {

/// Carries out one instruction. Slots that are not there yet are made. `state` and `stop` are those
/// of a forward; null for gradients.
void run_instruction(const PlanProgram& program, const PlanInstruction& instruction, PlanRun& run,
                     GraphState::Data* state, const std::stop_token* stop);

/// Of a stretch of calls, only the last one: those before have been made.
void run_last_call(const PlanProgram& program, const PlanInstruction& calls, PlanRun& run,
                   GraphState::Data* state, const std::stop_token* stop);

/// The tensor of a slot that has been written, in its sizes.
const at::Tensor& value_of(const PlanProgram& program, PlanRun& run, SlotId slot);

/// Of a gradient: whether there is none.
bool is_absent(const PlanProgram& program, const PlanRun& run, SlotId slot);

/// Of the graph that so many steps of a path lead to.
GraphState::Data& graph_state(GraphState::Data& top, const StatePath& path, std::size_t steps);

/// Within a catch: what is in flight goes on with where it was.
[[noreturn]] void rethrow_from(const PlanSite& site);

}  // namespace treadle::graph
