#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "way.h"
#include "workload.h"

namespace treadle::benchmarks {

/// How much is measured.
struct Effort {
  int rounds = 7;
  bool is_quick = false;  ///< only what shows that everything works
};

/// Measures a workload that lies in `folder`, and prints what came out. False when ways did not
/// compute the same.
using Chapter = bool (*)(const Workload& workload, const std::filesystem::path& folder,
                         const Programs& programs, const Effort& effort);

/// The time of a training step, each way against each, after their loss curves have been compared.
bool measure_steps(const Workload& workload, const std::filesystem::path& folder,
                   const Programs& programs, const Effort& effort);

/// The time of a step with frequent checkpoints, against a loop that saves as often, and against
/// none.
bool measure_saving(const Workload& workload, const std::filesystem::path& folder,
                    const Programs& programs, const Effort& effort);

/// A cross-validation with one worker and with two, and its memory.
bool measure_folds(const Workload& workload, const std::filesystem::path& folder,
                   const Programs& programs, const Effort& effort);

/// From the start of a process to the end of its first step.
bool measure_start_up(const Workload& workload, const std::filesystem::path& folder,
                      const Programs& programs, const Effort& effort);

}  // namespace treadle::benchmarks
