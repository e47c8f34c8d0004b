#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/core/history/run_observer.h>

namespace treadle::testing {

/// One thing an observer is told. What it is told of dies with the call.
using Call = std::function<void(RunObserver&)>;
using Calls = std::vector<Call>;

/// What a run tells, with numbers and names at the edge of what may be told.
struct ToldRun {
  std::string name = "iris";
  std::string folder = "runs/iris";  ///< need not exist

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kTooLarge = std::numeric_limits<double>::infinity();

  /// Epoch 1 is an ordinary one; of the others each has something that not every observer thinks
  /// of.
  static EpochSummary epoch(std::int64_t number) {
    EpochSummary summary{.epoch = number,
                         .epochs = 5,
                         .step = 2 * number,
                         .learning_rate = 0.001,
                         .train_loss = 0.5,
                         .val_loss = 0.75,
                         .metrics = {{"accuracy", 0.875, Direction::kHigherIsBetter}},
                         .best = number == 1,
                         .seconds = 1.5};
    if (number == 2) {
      summary.train_loss = kNone;
      summary.val_loss = kTooLarge;
      summary.metrics = {{"auc", kNone}, {"gain", -kTooLarge}, {"accuracy", 0}};
    }
    if (number == 3) {
      summary.logged = {{"encoded.norm", 2.5}, {"", kNone}};
      summary.decisions = {"learning rate times 0.1: loss stalled for 5 epochs", ""};
      summary.val_loss.reset();
      summary.metrics.clear();
    }
    if (number == 4) {
      summary.metrics = {{"recall.\"Iris\" \\ setosa\n</b>,;{}", 1},
                         {"précision.鳶尾", 1e-320},
                         {"", -1e308},
                         {std::string(300, 'm'), 1}};
    }
    return summary;
  }

  Calls beginning() const {
    return {[*this](RunObserver& o) { o.run_started(name, folder); },
            [](RunObserver& o) { o.noted("classification: the target has 3 classes"); },
            [](RunObserver& o) { o.noted(""); }};
  }

  /// Of one training, from `first_epoch` on: a resumed training does not begin with 1.
  Calls training(const FitId& fit, std::int64_t first_epoch = 1) const {
    Calls calls = {[fit](RunObserver& o) { o.fit_started(fit); }};
    for (std::int64_t number = first_epoch; number <= 5; ++number) {
      for (const std::int64_t step : {2 * number - 1, 2 * number})
        calls.push_back([=](RunObserver& o) { o.step_completed(fit, {number, 5, step, 10}); });
      calls.push_back([=](RunObserver& o) { o.epoch_completed(fit, epoch(number)); });
      calls.push_back([fit, folder = folder](RunObserver& o) {
        o.checkpoint_saved(fit, folder + "/checkpoints/" + fit.path() + "/last");
      });
    }
    calls.push_back(ending(fit));
    return calls;
  }

  /// Of a training that was trained, but not told to be, before the run was resumed.
  static Calls training_without_epochs(const FitId& fit) {
    return {[fit](RunObserver& o) { o.fit_started(fit); }, ending(fit)};
  }

  Calls end() const {
    return {[](RunObserver& o) { o.noted("2 rows were left out:\n\tline 7\n\tline 9"); },
            [*this](RunObserver& o) { o.run_completed(folder); }};
  }

  /// Two trainings at once and a final one, in one of the orders that threads may give them; 0 for
  /// one after the other.
  Calls whole(std::uint64_t order = 0) const {
    Calls calls = beginning();
    append(calls, woven(training({"fold-1", 0, 3}), training({"fold-2", 1, 3}), order));
    append(calls, training({"final", 2, 3}));
    append(calls, end());
    return calls;
  }

  /// The same run in a second process: fold-1 is not told of any more, fold-2 was about to end.
  Calls resumed() const {
    Calls calls = beginning();
    append(calls, training_without_epochs({"fold-2", 1, 3}));
    append(calls, training({"final", 2, 3}, 3));
    append(calls, end());
    return calls;
  }

  static void append(Calls& calls, Calls more) {
    calls.insert(calls.end(), more.begin(), more.end());
  }

 private:
  static Call ending(const FitId& fit) {
    FitSummary summary{.best_epoch = 1,
                       .epochs = 5,
                       .final_loss = kNone,
                       .best_loss = 0.75,
                       .stop_reason = "the watched value is not a number (loss)",
                       .metrics = epoch(4).metrics,
                       .seconds = 7.5};
    return [fit, summary](RunObserver& o) { o.fit_completed(fit, summary); };
  }

  // Both in their own order.
  static Calls woven(Calls one, Calls other, std::uint64_t order) {
    RandomBits bits(order);
    Calls calls;
    std::size_t taken = 0;
    for (Call& call : one) {
      while (order != 0 && taken < other.size() && bits.below(2) == 0)
        calls.push_back(other[taken++]);
      calls.push_back(std::move(call));
    }
    while (taken < other.size())
      calls.push_back(other[taken++]);
    return calls;
  }
};

}  // namespace treadle::testing
