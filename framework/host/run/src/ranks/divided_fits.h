#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "context/run_parts.h"
#include "fit/fit_lender.h"

namespace treadle::internal {

/// The fits of a run, trained by all processes of its group, each fit by one of them with all its
/// shards. Rank 0 plans and has the run's folder; a process trains what rank 0 lends to it.
class DividedFits {
 public:
  struct Plan {
    /// Runs a FitRunner with this lender, on a thread of its own.
    std::function<void(FitLender&)> run;
    /// After its failure: whether the run goes on, in the same processes.
    std::function<bool()> is_repeated;
  };

  /// `memory` as of FitRunner. Borrows `run`.
  DividedFits(RunParts& run, std::optional<std::int64_t> memory) : run_(run), memory_(memory) {}

  /// Until the plan has ended; throws in every process what ended it. `plan` is that of rank 0.
  /// Inside RunParts::budget; the communicator is nobody else's meanwhile.
  void run(const Plan& plan);
  /// What Plan::is_repeated() has said in rank 0.
  bool is_repeated() const { return is_repeated_; }

 private:
  RunParts& run_;
  const std::optional<std::int64_t> memory_;
  bool is_repeated_ = false;
};

}  // namespace treadle::internal
