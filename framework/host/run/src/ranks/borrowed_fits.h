#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "context/run_parts.h"
#include "fit/fit_planner.h"
#include "fit/fit_runner.h"
#include "ranks/fit_files.h"
#include "ranks/rank_mail.h"

namespace treadle::internal {

/// The fits that rank 0 lends to this process, as a plan for a FitRunner: it decides nothing, and
/// asks rank 0. Where a process is not rank 0, the files of a fit are here as long as it is
/// trained.
///
/// Thread-safe: reported() waits for an answer, while other calls go on.
class BorrowedFits final : public FitPlanner {
 public:
  /// Borrows both.
  BorrowedFits(RunParts& run, RankMail& mail);

  Orders next() override;
  bool begins(const FitId& fit) override;
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override;
  void paused(const FitId& fit) override;
  void stopped(const FitId& fit) override;
  void completed(const FitId& fit, CompletedFit result) override;
  bool failed(const FitId& fit, const Error& error) override;

  /// Whom to wake and to stop. Before the first message; outlives all.
  void serve(FitRunner& runner) { runner_ = &runner; }
  /// A message of rank 0; throws nothing.
  void received(const nlohmann::json& message);
  /// No message comes any more.
  void fail(std::exception_ptr why);
  /// The runner has ended with this failure.
  void tell_failure(const std::exception_ptr& failure);

  // Once the plan has ended.
  /// Throws the failure that rank 0 has ended with.
  void expect_success() const;
  /// Whether the run goes on all the same.
  bool is_repeated() const { return is_repeated_; }

 private:
  struct Borrowed {
    std::int64_t reported = 0;  // epochs, to rank 0
    bool is_judged = false;
    std::string model_folder = {};
    std::optional<FitVerdict> verdict = {};
  };

  void use(const nlohmann::json& message);
  void take(const nlohmann::json& message);
  std::shared_ptr<const ResolvedWorkflow> workflow_of(const nlohmann::json& resolved);
  void send_files(FitFiles kind, const std::string& fit, const std::string& name = "");
  void give_back(const FitId& fit, engine::FitEnd end, nlohmann::json failure = nullptr);
  bool is_home() const { return mail_.rank() == 0; }

  RunParts& run_;
  RankMail& mail_;
  FitRunner* runner_ = nullptr;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Orders orders_;
  std::map<std::string, Borrowed> fits_;  // of all times
  std::map<std::string, std::weak_ptr<const ResolvedWorkflow>> workflows_;
  bool is_over_ = false;
  bool is_repeated_ = false;
  std::exception_ptr failure_;
};

}  // namespace treadle::internal
