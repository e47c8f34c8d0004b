#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/history/run_observer.h>

namespace treadle::observers {

/// After each epoch rewrites a file in the Prometheus text exposition format (version 0.0.4), for
/// node-exporter's textfile collector. Each rewrite replaces the file in one instant, so the
/// collector never reads half of one.
///
/// Gauges, with labels `run` and `fit`: treadle_epoch, treadle_epochs_planned, treadle_step,
/// treadle_learning_rate, treadle_train_loss, treadle_val_loss (when there are validation
/// rows), treadle_epoch_seconds, treadle_metric (with a label `metric`), treadle_best_epoch and
/// treadle_completed (0 or 1). The file stays when the run ends.
///
/// Throws StorageError when the file cannot be written.
class Prometheus final : public RunObserver {
 public:
  explicit Prometheus(const Config& config);
  ~Prometheus() override;

 private:
  struct Training {
    EpochSummary newest;
    std::int64_t best_epoch = 0;  // 0: none yet
    bool completed = false;
  };

  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;

  std::string exposition() const;
  void write() const;

  std::filesystem::path path_;
  std::string run_;
  std::map<std::string, Training> trainings_;  // by the fit's name
};

}  // namespace treadle::observers
