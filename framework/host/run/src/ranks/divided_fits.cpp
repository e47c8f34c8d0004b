#include "ranks/divided_fits.h"

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <treadle/base/error.h>
#include <treadle/engine/thread_budget.h>

#include "fit/fit_runner.h"
#include "ranks/borrowed_fits.h"
#include "ranks/fit_messages.h"
#include "ranks/forwarded_events.h"
#include "ranks/lent_fits.h"
#include "ranks/rank_mail.h"

// Each process trains what it borrows, on the thread of the run and those of its budget. In rank 0
// a further thread runs the plan: it trains nothing, so no training keeps it from giving others
// something to do. RankMail has two threads that move messages.
//
// The end comes from rank 0, also that of a failure or a stop: its last message ends all processes.

namespace treadle::internal {
namespace {

std::exception_ptr failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

bool is_interruption(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Interrupted&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void DividedFits::run(const Plan& plan) {
  RankMail mail(*run_.options.communicator);
  const bool plans = mail.rank() == 0;
  BorrowedFits borrowed(run_, mail);
  FitRunner trainer(run_, borrowed, memory_);
  borrowed.serve(trainer);
  std::optional<LentFits> lent;
  if (plans)
    lent.emplace(run_, mail);
  ForwardedEvents forwarded(mail);
  if (!plans)
    run_.log.add(forwarded);

  mail.begin({.received =
                  [&](std::int64_t from, const nlohmann::json& message) {
                    at::globalContext().setFlushDenormal(true);  // as all threads of a budget
                    is_of_lender(kind_of(message)) ? borrowed.received(message)
                                                   : lent->received(from, message);
                  },
              .stopped =
                  [&] {
                    run_.request_stop();
                    trainer.wake();
                    if (lent)
                      lent->wake();
                  },
              .failed =
                  [&](const std::exception_ptr& why) {
                    borrowed.fail(why);
                    if (lent)
                      lent->fail(why);
                  }});
  const std::stop_callback on_stop(run_.stop(), [&mail] { mail.wish_stop(); });
  mail.send(0, message(FitMessage::kSlots, {{"slots", run_.budget.workers()}}));
  std::exception_ptr planned;
  std::thread planning;
  if (plans) {
    planning = std::thread([&, threads_of_operator = at::get_num_threads()] {
      planned = failure_of([&] {
        // Of the same kind, so that numbers are the same: ensembles are chosen by operators.
        engine::ThreadBudget budget(run_.budget.workers(), threads_of_operator);
        budget.run([&] { plan.run(*lent); });
      });
      lent->end(planned, planned && plan.is_repeated());
    });
  }
  const std::exception_ptr trained = failure_of([&] { trainer.run(); });
  if (trained && !is_interruption(trained))
    borrowed.tell_failure(trained);
  if (plans)
    planning.join();
  else
    run_.log.remove(forwarded);
  mail.finish();
  is_repeated_ = borrowed.is_repeated();
  if (planned)
    std::rethrow_exception(planned);
  borrowed.expect_success();
}

}  // namespace treadle::internal
