#include "ranks/borrowed_fits.h"

#include <filesystem>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/host/run/runtime.h>

#include "ranks/fit_messages.h"

namespace treadle::internal {

namespace fs = std::filesystem;
using nlohmann::json;

BorrowedFits::BorrowedFits(RunParts& run, RankMail& mail) : run_(run), mail_(mail) {}

// The plan.

FitPlanner::Orders BorrowedFits::next() {
  const std::lock_guard lock(mutex_);
  Orders orders = std::exchange(orders_, {});
  orders.waits = !is_over_;
  return orders;
}

bool BorrowedFits::begins(const FitId& fit) {
  mail_.send(0, message(FitMessage::kBegun, {{"fit", fit.path()}}));
  return true;
}

FitVerdict BorrowedFits::reported(const FitId& fit, const EpochSummary& epoch) {
  bool asks = false;
  {
    const std::lock_guard lock(mutex_);
    Borrowed& borrowed = fits_.at(fit.path());
    if (epoch.epoch <= borrowed.reported)
      return FitVerdict::kContinue;
    borrowed.reported = epoch.epoch;
    borrowed.verdict.reset();
    asks = borrowed.is_judged;
  }
  mail_.send(0, message(FitMessage::kReport,
                        {{"fit", fit.path()}, {"epoch", to_json(epoch)}, {"asks", asks}}));
  if (!asks)
    return FitVerdict::kContinue;
  std::unique_lock lock(mutex_);
  const Borrowed& borrowed = fits_.at(fit.path());
  changed_.wait(lock, [&] { return borrowed.verdict || is_over_; });
  return borrowed.verdict.value_or(FitVerdict::kStop);
}

void BorrowedFits::paused(const FitId& fit) {
  give_back(fit, engine::FitEnd::kPaused);
}

void BorrowedFits::stopped(const FitId& fit) {
  give_back(fit, engine::FitEnd::kStopped);
}

void BorrowedFits::completed(const FitId& fit, CompletedFit) {
  if (!is_home()) {
    send_files(FitFiles::kRecord, fit.path());
    std::string model_folder;
    {
      const std::lock_guard lock(mutex_);
      model_folder = fits_.at(fit.path()).model_folder;
    }
    if (!model_folder.empty())
      send_files(FitFiles::kModel, fit.path(), model_folder);
  }
  give_back(fit, engine::FitEnd::kCompleted);
}

bool BorrowedFits::failed(const FitId& fit, const Error& error) {
  give_back(fit, engine::FitEnd::kStopped, to_json(error));
  return true;
}

void BorrowedFits::send_files(FitFiles kind, const std::string& fit, const std::string& name) {
  mail_.send(0, message(FitMessage::kFiles,
                        {{"files", static_cast<int>(kind)},
                         {"fit", fit},
                         {"name", name},
                         {"content", packed(place_of(run_.folder, kind, fit, name))}}));
}

void BorrowedFits::give_back(const FitId& fit, engine::FitEnd end, json failure) {
  mail_.send(0, message(FitMessage::kEnded, {{"fit", fit.path()},
                                             {"end", static_cast<int>(end)},
                                             {"failure", std::move(failure)}}));
  if (is_home())
    return;
  std::error_code ignored;
  fs::remove_all(run_.folder.checkpoints(fit.path()), ignored);
  fs::remove_all(run_.folder.fit_result(fit.path()), ignored);
}

// Messages of rank 0.

void BorrowedFits::received(const json& message) {
  try {
    use(message);
  } catch (...) {
    tell_failure(std::current_exception());
  }
}

void BorrowedFits::use(const json& message) {
  switch (kind_of(message)) {
    case FitMessage::kLend:
      take(message);
      break;
    case FitMessage::kVerdict: {
      const std::lock_guard lock(mutex_);
      fits_.at(message.at("fit").get<std::string>()).verdict =
          static_cast<FitVerdict>(message.at("verdict").get<int>());
      break;
    }
    case FitMessage::kStop:
      return runner_->stop(message.at("fit").get<std::string>());
    case FitMessage::kOver: {
      const bool has_failed = !message.at("failure").is_null();
      {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        is_repeated_ = message.at("is_repeated").get<bool>();
        if (has_failed)
          failure_ = error_from(message.at("failure"));
      }
      if (has_failed)  // trainings end with a checkpoint
        run_.request_stop();
      break;
    }
    default:
      TREADLE_EXPECTS(false, "rank 0 sends messages to borrowers");
  }
  changed_.notify_all();
  runner_->wake();
}

void BorrowedFits::take(const json& message) {
  for (const json& one : message.at("files")) {
    unpack(one.at("content"),
           place_of(run_.folder, static_cast<FitFiles>(one.at("files").get<int>()),
                    one.at("fit").get<std::string>(), one.at("name").get<std::string>()));
  }
  const std::lock_guard lock(mutex_);
  PlannedFit fit = planned_fit_from(message.at("fit"),
                                    [this](const json& resolved) { return workflow_of(resolved); });
  const std::string path = fit.id.path();
  const bool is_known = fits_.count(path) > 0;
  fits_[path] = {.reported = message.at("reported").get<std::int64_t>(),
                 .is_judged = fit.is_judged,
                 .model_folder = fit.model_folder};
  runner_->forget_stop(path);  // an earlier loan was
  if (is_known)
    orders_.resume.push_back(path);
  else
    orders_.start.push_back(std::move(fit));
}

/// Fits of one document, such as the folds of a trial, have components in common.
std::shared_ptr<const ResolvedWorkflow> BorrowedFits::workflow_of(const json& resolved) {
  std::weak_ptr<const ResolvedWorkflow>& known = workflows_[resolved.dump()];
  std::shared_ptr<const ResolvedWorkflow> workflow = known.lock();
  if (!workflow) {
    workflow = std::make_shared<const ResolvedWorkflow>(run_.runtime.resolve(resolved));
    known = workflow;
  }
  return workflow;
}

// The end.

void BorrowedFits::fail(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    failure_ = std::move(why);
  }
  run_.request_stop();
  changed_.notify_all();
  runner_->wake();
}

void BorrowedFits::tell_failure(const std::exception_ptr& failure) {
  mail_.send(0, message(FitMessage::kFailed, {{"failure", to_json(failure)}}));
}

void BorrowedFits::expect_success() const {
  if (failure_)
    std::rethrow_exception(failure_);
}

}  // namespace treadle::internal
