#include "ranks/lent_fits.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/host/run/checkpoint_store.h>

#include "fit/fit_runner.h"
#include "ranks/fit_files.h"

// Messages of one process come in their order. So the files and the rows of history of a fit are in
// the folder when it returns.

namespace treadle::internal {

namespace fs = std::filesystem;
using nlohmann::json;

LentFits::LentFits(RunParts& run, RankMail& mail)
    : run_(run), mail_(mail), borrowers_(static_cast<std::size_t>(mail.world_size())) {}

void LentFits::serve(FitRunner* runner) {
  const std::unique_lock lock(serving_);
  runner_ = runner;
}

std::optional<std::int64_t> LentFits::freest(const PlannedFit& fit) const {
  std::optional<std::size_t> freest;
  for (std::size_t rank = 0; rank < (fit.is_result ? 1 : borrowers_.size()); ++rank) {
    if (borrowers_[rank].is_free() && (!freest || borrowers_[rank].fits < borrowers_[*freest].fits))
      freest = rank;
  }
  return freest ? std::optional(static_cast<std::int64_t>(*freest)) : std::nullopt;
}

bool LentFits::has_room(const PlannedFit& fit) const {
  const std::lock_guard lock(mutex_);
  return freest(fit).has_value();
}

/// Its checkpoints, and the weights that it begins with.
json LentFits::files_for(const Loan& loan) const {
  json files = json::array();
  const std::string& path = loan.fit.id.path();
  const auto add = [&](FitFiles kind, const std::string& fit, const std::string& name) {
    files.push_back({{"files", static_cast<int>(kind)},
                     {"fit", fit},
                     {"name", name},
                     {"content", packed(place_of(run_.folder, kind, fit, name))}});
  };
  for (const fs::path& checkpoint : CheckpointStore(run_.folder.checkpoints(path)).all())
    add(FitFiles::kCheckpoint, path, checkpoint.filename().string());
  if (loan.fit.start && loan.fit.start->from == WarmStart::From::kWeights)
    add(FitFiles::kRecord, loan.fit.start->fit, "");
  return files;
}

void LentFits::lend(const Loan& loan) {
  const std::string& path = loan.fit.id.path();
  std::int64_t rank = 0;
  {
    const std::lock_guard lock(mutex_);
    rank = freest(loan.fit).value();
    ++borrowers_[static_cast<std::size_t>(rank)].fits;
    lent_[path] = {.rank = rank};
  }
  mail_.send(rank, message(FitMessage::kLend,
                           {{"fit", to_json(loan.fit)},
                            {"reported", loan.epochs_reported},
                            {"files", rank == mail_.rank() ? json::array() : files_for(loan)}}));
}

FitLender::News LentFits::news() {
  const std::lock_guard lock(mutex_);
  if (failure_)
    std::rethrow_exception(failure_);
  return std::exchange(news_, {});
}

engine::FitEnd LentFits::take_back(const std::string& fit) {
  const std::lock_guard lock(mutex_);
  const Return back = std::move(returned_.extract(fit).mapped());
  if (back.failure)
    std::rethrow_exception(back.failure);
  return back.end;
}

void LentFits::stop(const std::string& fit) {
  std::optional<std::int64_t> rank;
  {
    const std::lock_guard lock(mutex_);
    if (const auto lent = lent_.find(fit); lent != lent_.end())
      rank = lent->second.rank;
  }
  if (rank)
    mail_.send(*rank, message(FitMessage::kStop, {{"fit", fit}}));
}

void LentFits::fail(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_)
      failure_ = std::move(why);
  }
  wake();
}

void LentFits::end(const std::exception_ptr& failure, bool is_repeated) {
  mail_.send_all(message(FitMessage::kOver, {{"failure", failure ? to_json(failure) : json()},
                                             {"is_repeated", is_repeated}}));
}

void LentFits::wake() {
  const std::shared_lock lock(serving_);
  if (runner_ != nullptr)
    runner_->wake();
}

// Messages of borrowers.

void LentFits::received(std::int64_t from, const json& message) {
  try {
    use(from, message);
  } catch (...) {
    fail(std::current_exception());
  }
}

void LentFits::use(std::int64_t from, const json& message) {
  switch (kind_of(message)) {
    case FitMessage::kSlots: {
      {
        const std::lock_guard lock(mutex_);
        borrowers_[static_cast<std::size_t>(from)].slots = message.at("slots").get<std::int64_t>();
        news_.has_more_room = true;
      }
      return wake();
    }
    case FitMessage::kBegun:
      return begun(message.at("fit").get<std::string>());
    case FitMessage::kReport:
      return report(from, message);
    case FitMessage::kEnded:
      return ended(message);
    case FitMessage::kFailed:
      return fail(error_from(message.at("failure")));
    case FitMessage::kFiles:
      return keep_files(message);
    case FitMessage::kEvent:
      return tell_observers(message);
    default:
      break;
  }
  TREADLE_EXPECTS(false, "rank 0 receives messages of borrowers");
}

void LentFits::begun(const std::string& fit) {
  {
    const std::lock_guard lock(mutex_);
    Lent& lent = lent_.at(fit);
    if (std::exchange(lent.has_begun, true))
      return;
    ++borrowers_[static_cast<std::size_t>(lent.rank)].begun;
    news_.has_more_room = true;
  }
  wake();
}

FitVerdict LentFits::asked(const std::string& fit, const EpochSummary& epoch) {
  const std::shared_lock lock(serving_);
  return runner_ != nullptr ? runner_->reported_elsewhere(fit, epoch) : FitVerdict::kStop;
}

void LentFits::report(std::int64_t from, const json& message) {
  const auto fit = message.at("fit").get<std::string>();
  const FitVerdict verdict = asked(fit, epoch_from(message.at("epoch")));
  if (message.at("asks").get<bool>()) {
    mail_.send(from, internal::message(FitMessage::kVerdict,
                                       {{"fit", fit}, {"verdict", static_cast<int>(verdict)}}));
  } else if (verdict != FitVerdict::kContinue) {
    {
      const std::lock_guard lock(mutex_);
      lent_.at(fit).verdict = verdict;
    }
    mail_.send(from, internal::message(FitMessage::kStop, {{"fit", fit}}));
  }
}

void LentFits::ended(const json& message) {
  const auto fit = message.at("fit").get<std::string>();
  Return back{static_cast<engine::FitEnd>(message.at("end").get<int>()), nullptr};
  if (!message.at("failure").is_null())
    back.failure = error_from(message.at("failure"));
  {
    const std::lock_guard lock(mutex_);
    const Lent lent = lent_.extract(fit).mapped();
    Borrower& borrower = borrowers_[static_cast<std::size_t>(lent.rank)];
    --borrower.fits;
    borrower.begun -= lent.has_begun ? 1 : 0;
    if (lent.verdict == FitVerdict::kPause && back.end == engine::FitEnd::kStopped)
      back.end = engine::FitEnd::kPaused;
    returned_[fit] = std::move(back);
    news_.returned.push_back(fit);
    news_.has_more_room = true;
  }
  run_.has_trained = true;
  wake();
}

void LentFits::keep_files(const json& message) {
  const auto kind = static_cast<FitFiles>(message.at("files").get<int>());
  const auto fit = message.at("fit").get<std::string>();
  unpack(message.at("content"),
         place_of(run_.folder, kind, fit, message.at("name").get<std::string>()));
  run_.has_trained = true;
  if (kind != FitFiles::kCheckpoint)
    return;
  // Of the older ones those that its process has kept as well.
  std::error_code ignored;
  const auto kept = message.at("kept").get<std::vector<std::string>>();
  for (const fs::directory_entry& entry :
       fs::directory_iterator(run_.folder.checkpoints(fit), ignored)) {
    const std::string name = entry.path().filename().string();
    if (std::find(kept.begin(), kept.end(), name) == kept.end())
      fs::remove_all(entry.path(), ignored);
  }
}

void LentFits::tell_observers(const json& message) {
  const json& event = message;
  if (event.contains("note")) {
    // Of notes that each process makes, one is enough.
    if (const auto text = event.at("note").get<std::string>(); run_.log.is_first_of(text))
      run_.log.note(text);
    return;
  }
  const FitId id = fit_id_from(event.at("id"));
  if (event.contains("epoch")) {
    run_.log.notify([id, epoch = epoch_from(event.at("epoch"))](RunObserver& observer) {
      observer.epoch_completed(id, epoch);
    });
  } else if (event.contains("summary")) {
    run_.log.notify([id, summary = fit_summary_from(event.at("summary"))](RunObserver& observer) {
      observer.fit_completed(id, summary);
    });
  } else if (event.contains("step")) {
    const auto step = event.at("step").get<std::array<std::int64_t, 4>>();
    StepProgress progress{step[0], {}, step[2], {}};
    if (step[1] >= 0)
      progress.epochs = step[1];
    if (step[3] >= 0)
      progress.total_steps = step[3];
    run_.log.notify(
        [id, progress](RunObserver& observer) { observer.step_completed(id, progress); });
  } else {
    run_.log.notify([id](RunObserver& observer) { observer.fit_started(id); });
  }
}

}  // namespace treadle::internal
