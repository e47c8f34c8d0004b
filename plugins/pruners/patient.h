#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/search/pruner.h>

namespace treadle::pruners {

/// `patient`: asks another pruner only about trials that have stopped improving, and without
/// another one prunes them (as Optuna's PatientPruner, optuna/pruners/_patient.py).
///
/// A trial has stopped improving when the best of its last `patience` + 1 values is worse by more
/// than `min_delta` than the best before them. Which trial a job goes on with is the other pruner's
/// decision.
class Patient final : public Pruner {
 public:
  Patient(const Config& config, const ComponentContext& context);

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override;
  NextJob do_next_job(const StudyView& study) const override;

  bool has_stopped_improving(const Trial& trial) const;

  std::int64_t patience_;
  double min_delta_;
  std::unique_ptr<const Pruner> pruner_;  // or null
};

}  // namespace treadle::pruners
