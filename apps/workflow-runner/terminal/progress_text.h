#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/history/run_observer.h>

#include "terminal/terminal.h"

/// What the view of a running training says; all of it pure text.
namespace treadle::cli {

/// Which epochs get a line: all of a short run, else about twenty, spread, with the first and the
/// last. Several trainings share the twenty.
bool has_line(std::int64_t epoch, std::optional<std::int64_t> epochs, std::int64_t trainings);

/// Rows under one another: the columns are those of the first epoch there is.
class EpochTable {
 public:
  /// Of several trainings the name stands in front. Where the rows would be wider than `columns`,
  /// the learning rate is left out, then metrics, the last ones first: time and "best" stay.
  EpochTable(const FitId& fit, const EpochSummary& first,
             std::size_t columns = static_cast<std::size_t>(-1));

  /// Whether `epoch` was evaluated, and the first one was not (training.evaluate_every): it needs
  /// a table of its own.
  bool lacks_columns_of(const EpochSummary& epoch) const;
  std::string head() const;
  std::string row(const FitId& fit, const EpochSummary& epoch) const;

 private:
  std::size_t fit_width_ = 0;  ///< 0: no such column
  std::size_t epoch_width_ = 0;
  std::size_t width() const;
  void fit_into(std::size_t columns);

  bool has_validation_ = false;
  bool has_rate_ = true;
  std::vector<std::string> metrics_;
  std::vector<std::string> logged_;  // what the model shows
};

/// One training, as the live line sees it.
struct LiveTraining {
  std::string name;
  StepProgress progress;
  std::optional<double> loss;  ///< of the last epoch, validation where there is one
  std::optional<MetricValue> metric;
};

/// What a search has come to.
struct LiveSearch {
  SearchProgress progress;
  std::vector<std::pair<std::string, std::string>> best_params = {};
};

struct LiveState {
  std::vector<LiveTraining> running;
  std::int64_t finished = 0;   ///< trainings that are done
  std::int64_t trainings = 1;  ///< in the run
  std::optional<double> steps_per_second;
  std::optional<double> seconds_left;
  std::optional<LiveSearch> search = std::nullopt;
};

/// "epoch 12/60  20 %  1240 steps/s  loss 0.1234  accuracy 0.9533  0:12 left", or with several
/// trainings "2 of 6 done  fold-3 12/60  fold-4 10/60 …"; cut to `columns`.
std::string live_line(const LiveState& state, std::size_t columns);

/// Of a search: how many trials there are of each kind, the best of them, and a line for each that
/// runs; at most `rows` lines, each cut to `columns`.
std::vector<std::string> live_search(const LiveState& state, std::size_t columns, std::size_t rows);

/// "trial 7: complete, val_loss 0.2331  (optimizer.learning_rate 0.012, model.hidden [16])"
std::string trial_line(const TrialSummary& trial, const SearchProgress& search);

/// "0:12", "1:02:03".
std::string clock_text(double seconds);

/// "fold-2: 44 epochs, the best was 34, loss 0.1432, accuracy 0.9533 (stopped early: …)"
std::string fit_line(const FitId& fit, const FitSummary& summary);

}  // namespace treadle::cli
