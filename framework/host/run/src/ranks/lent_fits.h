#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "context/run_parts.h"
#include "fit/fit_lender.h"
#include "ranks/fit_messages.h"
#include "ranks/rank_mail.h"

namespace treadle::internal {

/// In rank 0: lends fits to all processes, this one among them. A process has as many as it trains
/// at once, and a further one only when those have begun: one that lacks memory for it would let it
/// wait. The fit with the run's model is trained in rank 0, which has the run's folder.
///
/// Thread-safe.
class LentFits final : public FitLender {
 public:
  /// Borrows both.
  LentFits(RunParts& run, RankMail& mail);

  void serve(FitRunner* runner) override;
  bool has_room(const PlannedFit& fit) const override;
  void lend(const Loan& loan) override;
  News news() override;
  engine::FitEnd take_back(const std::string& fit) override;
  void stop(const std::string& fit) override;

  /// A message for rank 0; throws nothing.
  void received(std::int64_t from, const nlohmann::json& message);
  void wake();
  /// No fit comes back any more. The first reason stands.
  void fail(std::exception_ptr why);
  /// Tells all processes that the plan has ended: with a failure, or with none. `is_repeated`: the
  /// run goes on in the same processes all the same.
  void end(const std::exception_ptr& failure, bool is_repeated);

 private:
  struct Borrower {
    std::int64_t slots = 0;
    std::int64_t fits = 0;
    std::int64_t begun = 0;

    bool is_free() const { return fits < slots && begun == fits; }
  };
  struct Lent {
    std::int64_t rank = 0;
    bool has_begun = false;
    std::optional<FitVerdict> verdict = {};  // that ends it
  };
  struct Return {
    engine::FitEnd end;
    std::exception_ptr failure;
  };

  std::optional<std::int64_t> freest(const PlannedFit& fit) const;
  nlohmann::json files_for(const Loan& loan) const;
  void use(std::int64_t from, const nlohmann::json& message);
  void begun(const std::string& fit);
  void report(std::int64_t from, const nlohmann::json& message);
  void ended(const nlohmann::json& message);
  void keep_files(const nlohmann::json& message);
  void tell_observers(const nlohmann::json& message);
  FitVerdict asked(const std::string& fit, const EpochSummary& epoch);

  RunParts& run_;
  RankMail& mail_;

  std::shared_mutex serving_;  // guards the runner's life
  FitRunner* runner_ = nullptr;

  mutable std::mutex mutex_;         // guards what follows
  std::vector<Borrower> borrowers_;  // by rank
  std::map<std::string, Lent> lent_;
  std::map<std::string, Return> returned_;
  News news_;
  std::exception_ptr failure_;
};

}  // namespace treadle::internal
