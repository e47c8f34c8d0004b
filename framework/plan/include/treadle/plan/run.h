#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/tensor/task_random.h>

namespace treadle::plan {

class CallContext;

/// Autograd's record of a stretch of calls, from the forward to its backward: leaves where it
/// begins, results where it ends.
struct Tape {
  std::vector<at::Tensor> leaves;   // as Instruction::inputs
  std::vector<at::Tensor> results;  // as Instruction::outputs
};

/// The memory of one forward of a Program and its backward. Belongs to one of them at a time;
/// afterwards the next forward reuses it.
struct Run {
  Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { leave_branches(); }

  /// Scopes of random streams end in reverse order of their beginning.
  void leave_branches() {
    while (!branches.empty())
      branches.pop_back();
  }

  at::Tensor arena;  // undefined in the run that makes the program: it allocates every slot
  std::vector<at::Tensor> slots;
  std::vector<std::uint8_t> absent;  // as slots that are roots: a gradient that does not exist
  std::vector<Tape> tapes;
  std::vector<std::uint64_t> seeds;
  std::vector<std::unique_ptr<TaskRandom>> branches;  // entered, innermost last
  /// Per parameter, during a backward: where its gradient is summed. The parameter's own grad()
  /// where that is all zeros; undefined where nothing arrived yet.
  std::vector<at::Tensor> sums;
  std::vector<std::uint8_t> arrived;     // as sums: whether something was added
  bool hands_sums_over = false;          ///< complete sums are added to the parameters' grad()
  const CallContext* context = nullptr;  ///< during a forward
};

}  // namespace treadle::plan
