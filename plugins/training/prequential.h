#pragma once

#include <optional>
#include <string_view>

#include <treadle/base/config.h>
#include <treadle/core/training/adaptation.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle {

/// Prequential training, or test-then-train (J. Gama, R. Sebastião, P. P. Rodrigues, "On evaluating
/// stream learning algorithms", 2013): every batch is predicted by the model as it is, and then
/// trained on. An epoch is a window of rows.
///
/// State: the windows so far and the place in the open one.
class PrequentialTraining final : public TrainingWorkflow, public RecordsAdaptation {
 public:
  explicit PrequentialTraining(const Config& config);

  AdaptationRecord adaptation() const override;

 private:
  void do_train(TrainingSession& session) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  LoopNeeds do_needs() const override;
  void count(const Batch& batch, const GroupNames* names);
  void end_window(const EpochSummary& row);
  RecoveryRule rule() const;

  const Config config_;
  const std::int64_t window_rows_;
  const bool by_groups_;
  std::optional<std::int64_t> group_;         // of the last row
  std::optional<AdaptationTracker> tracker_;  // by groups: nothing before the first row
};

}  // namespace treadle
