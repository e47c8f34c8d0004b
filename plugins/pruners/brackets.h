#pragma once

#include <cstdint>
#include <optional>

#include <treadle/search/pruner.h>

#include "rungs.h"

namespace treadle::pruners {

/// Trials that are halved together: they have consecutive numbers.
struct Bracket {
  std::int64_t first = 0;
  std::int64_t size = 0;  ///< the last one of a study may get fewer
};

/// Synchronous successive halving, of one bracket of trials after the other.
///
/// The trials of a bracket pause at its rungs. Once all have come to a rung or ended, the best
/// 1 / `reduction_factor` of them, at least one, are promoted to the next: at rung k of a bracket
/// of n trials max(floor(n / reduction_factor^k), 1) are left. A trial that fails after it has been
/// promoted is not replaced. One that is alone does not pause.
///
/// Promotions come first, of earlier brackets first. Where none is due, another trial starts: that
/// of the next bracket, while one waits for its rung.
class Brackets : public Pruner {
 protected:
  explicit Brackets(std::int64_t reduction_factor) : reduction_factor_(reduction_factor) {}

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const final;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const final;
  NextJob do_next_job(const StudyView& study) const final;

  /// That of the trial, in a study of so many. Brackets follow one another without a gap.
  virtual Bracket bracket_of(std::int64_t trial, std::int64_t max_trials) const = 0;
  /// Of the trial's bracket. May be empty.
  virtual const Rungs& rungs_of(std::int64_t trial) const = 0;

  /// The trial of the bracket to promote next, if one is due.
  std::optional<std::int64_t> due(const Bracket& bracket, const StudyView& study) const;

  std::int64_t reduction_factor_;
};

}  // namespace treadle::pruners
