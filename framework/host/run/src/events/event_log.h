#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/core/history/run_observer.h>

namespace treadle::internal {

/// events.jsonl: everything that happened, as it happened, one JSON object a line.
class EventLog final : public RunObserver {
 public:
  explicit EventLog(const std::filesystem::path& path);

  /// When the run first began, however often it was resumed: "2026-05-04T10:11:12Z"; empty when the
  /// log lacks it.
  std::string started_at() const;

  /// Drops what `fit` did after `epochs` epochs.
  void cut_back(const std::string& fit, std::int64_t epochs);

 private:
  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_fit_started(const FitId& fit) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  void do_checkpoint_saved(const FitId& fit, const std::string& path) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;
  void do_trial_changed(const TrialSummary& trial, const SearchProgress& search) override;
  void do_noted(const std::string& text) override;
  void do_run_completed(const std::string& folder) override;
  void write(const char* event, const nlohmann::json& content);

  std::filesystem::path path_;
  std::unique_ptr<AppendFile> file_;
};

}  // namespace treadle::internal
