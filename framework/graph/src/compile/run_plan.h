#pragma once

#include <treadle/plan/program.h>
#include <treadle/plan/run.h>

#include "compile/calls.h"

namespace treadle::graph {

/// Carries out one instruction. Slots that are not there yet are allocated. A forward has set
/// `run.context`; a backward has none.
void run_instruction(const plan::Program& program, const plan::Instruction& instruction,
                     plan::Run& run);

/// Of a stretch of calls, only the last one: those before have been made.
void run_last_call(const plan::Program& program, const plan::Instruction& calls, plan::Run& run);

/// The tensor of a slot that has been written, in the slot's sizes.
const at::Tensor& value_of(const plan::Program& program, plan::Run& run, plan::SlotId slot);

/// Of a gradient: whether there is none.
bool is_absent(const plan::Program& program, const plan::Run& run, plan::SlotId slot);

/// Within a catch: rethrows with the way from the site to the outermost graph.
[[noreturn]] void rethrow_from(const plan::Site& site);

}  // namespace treadle::graph
