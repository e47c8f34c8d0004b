#pragma once

#include <functional>
#include <string>
#include <variant>

#include <treadle/core/history/run_observer.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/workflow_run.h>

#include "command_line/command_line.h"
#include "commands/shared_training.h"
#include "terminal/interruption.h"

namespace treadle::cli {

/// Hears where the run is kept, and when there is something to save.
class FirstStep final : public RunObserver {
 public:
  explicit FirstStep(Interruption& interruption) : interruption_(interruption) {}

 private:
  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_step_completed(const FitId&, const StepProgress&) override;

  Interruption& interruption_;
};

using Outcome = std::variant<RunOutcome, PipelineOutcome>;

/// A training with everything a person at a terminal expects around it: progress, Ctrl-C that saves
/// the run and prints how to continue it, and the printed outcome. `train` is given the options
/// that bring this about and adds its own.
void train_watched(const CommandLine& line, const std::function<Outcome(RunOptions)>& train);

/// The same for one of several processes that train together: that of rank 0 alone prints.
void train_watched(const CommandLine& line, const SharedTraining& shared,
                   const std::function<Outcome(RunOptions)>& train);

}  // namespace treadle::cli
