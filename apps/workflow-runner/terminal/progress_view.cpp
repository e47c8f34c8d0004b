#include "terminal/progress_view.h"

#include <algorithm>
#include <utility>

namespace treadle::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenPaints = 100ms;
// What is shown should be steady to the eye, and still follow what happens.
constexpr auto kRateWindow = 3s;
constexpr auto kLeftWindow = 30s;

constexpr std::size_t kMostLiveLines = 10;

/// Its trial has a line.
bool is_of_trial(const FitId& fit) {
  return fit.path().starts_with("trials/");
}

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// One of the models to compare with, or of the trials of a search: how it is trained is not what
/// people look at.
bool is_of_many(const FitId& fit) {
  return fit.path().starts_with("baselines/") || is_of_trial(fit);
}

}  // namespace

ProgressView::ProgressView(Terminal terminal, bool silent, std::chrono::milliseconds quiet)
    : terminal_(terminal), silent_(silent), quiet_(quiet), last_line_(Clock::now()) {
  if (silent_)
    return;
  painter_ = std::jthread([this](std::stop_token stop) {
    terminal_.can_repaint() ? keep_painting(std::move(stop)) : keep_reporting(std::move(stop));
  });
}

ProgressView::~ProgressView() {
  finish();
}

void ProgressView::announce(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print(text);
}

void ProgressView::finish() {
  if (painter_.joinable()) {
    painter_.request_stop();
    painter_.join();
  }
  const std::lock_guard lock(mutex_);
  erase_live_lines();
  is_finished_ = true;
}

std::string ProgressView::folder() const {
  const std::lock_guard lock(mutex_);
  return folder_;
}

void ProgressView::do_run_started(const std::string& name, const std::string& folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  print(terminal_.bold(name) + terminal_.dim("  " + shown_path(folder)));
}

void ProgressView::do_fit_started(const FitId& fit) {
  const std::lock_guard lock(mutex_);
  // Below the top of the tree nobody knows how many there will be.
  training_count_ = std::max(training_count_, fit.group().empty() ? fit.count() : 0);
  if (find(fit) == nullptr)
    trainings_.push_back({fit});
  training_count_ = std::max(training_count_, static_cast<std::int64_t>(trainings_.size()));
}

ProgressView::Training* ProgressView::find(const FitId& fit) {
  const auto found = std::find_if(trainings_.begin(), trainings_.end(),
                                  [&](const Training& training) { return training.id == fit; });
  return found == trainings_.end() ? nullptr : &*found;
}

void ProgressView::do_step_completed(const FitId& fit, const StepProgress& progress) {
  const std::lock_guard lock(mutex_);
  if (Training* training = find(fit))
    training->steps = progress;
}

void ProgressView::do_epoch_completed(const FitId& fit, const EpochSummary& summary) {
  const std::lock_guard lock(mutex_);
  Training* training = find(fit);
  if (training == nullptr)
    return;
  training->last = summary;
  training->is_last_shown = false;
  if (!is_of_many(fit) && has_line(summary.epoch, summary.epochs, fit.count()))
    print_epoch(*training, summary);
}

void ProgressView::do_fit_completed(const FitId& fit, const FitSummary& summary) {
  const std::lock_guard lock(mutex_);
  if (Training* training = find(fit)) {
    // Early stopping may have ended it at an epoch that had no line.
    if (fit.count() == 1 && !is_of_many(fit) && training->last && !training->is_last_shown)
      print_epoch(*training, *training->last);
    training->is_done = true;
  }
  if (is_of_trial(fit))
    return;
  if (fit.count() > 1 || is_of_many(fit)) {
    print(fit_line(fit, summary));
  } else if (!summary.stop_reason.empty()) {
    print("stopped after epoch " + std::to_string(summary.epochs) + ": " + summary.stop_reason);
  }
}

void ProgressView::do_trial_changed(const TrialSummary& trial, const SearchProgress& search) {
  const std::lock_guard lock(mutex_);
  if (!search_)
    search_.emplace();
  search_->progress = search;
  search_told_ = Clock::now();
  params_[trial.number] = trial.params;
  if (const auto best = params_.find(search.best_trial); best != params_.end())
    search_->best_params = best->second;
  // What is paused takes no part any more until it goes on.
  const std::string path = "trials/" + std::to_string(trial.number);
  if (trial.state != "running") {
    std::erase_if(trainings_, [&](const Training& training) {
      const std::string& of = training.id.path();
      return of == path || of.starts_with(path + "/");
    });
  }
  if (trial.state == "running" || trial.state == "paused")
    return;
  const std::string line = trial_line(trial, search);
  print(trial.number == search.best_trial ? terminal_.green(line) : line);
  params_.erase(trial.number == search.best_trial ? -1 : trial.number);
}

void ProgressView::do_noted(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print(terminal_.dim("note: ") + text);
}

void ProgressView::print(const std::string& line) {
  if (silent_)
    return;
  erase_live_lines();
  terminal_.write(line + "\n");
  last_line_ = Clock::now();
}

void ProgressView::print_epoch(Training& training, const EpochSummary& summary) {
  if (!table_ || table_->lacks_columns_of(summary)) {
    table_.emplace(training.id, summary, terminal_.width());
    print(terminal_.dim(cut_to(table_->head(), terminal_.width())));
  }
  const std::string row = cut_to(table_->row(training.id, summary), terminal_.width());
  print(summary.best && summary.val_loss ? terminal_.green(row) : row);
  training.is_last_shown = true;
}

void ProgressView::erase_live_lines() {
  if (live_lines_ == 0)
    return;
  std::string erasing = "\r\x1b[K";
  for (; live_lines_ > 1; --live_lines_)
    erasing += "\x1b[1A\x1b[K";
  live_lines_ = 0;
  terminal_.write(erasing);
}

void ProgressView::keep_painting(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, kBetweenPaints, [] { return false; });
    if (!stop.stop_requested())
      paint();
  }
}

void ProgressView::keep_reporting(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, std::min<std::chrono::milliseconds>(quiet_ / 2, 1s),
                   [] { return false; });
    if (stop.stop_requested())
      return;
    const LiveState state = look();  // also where nothing is printed: rates are over some seconds
    if (state.running.empty() || Clock::now() - last_line_ < quiet_)
      continue;
    const std::size_t columns = terminal_.width();
    for (const std::string& line : state.search ? live_search(state, columns, kMostLiveLines)
                                                : std::vector{live_line(state, columns)})
      print(line);
  }
}

void ProgressView::paint() {
  if (is_finished_)
    return;
  const LiveState state = look();
  if (state.running.empty()) {
    erase_live_lines();
    return;
  }
  // The terminal writes ^C behind it, and must not begin another line for that.
  const std::size_t columns = terminal_.width() - 3;
  const std::vector<std::string> lines =
      state.search ? live_search(state, columns, std::min(terminal_.height(), kMostLiveLines))
                   : std::vector{live_line(state, columns)};
  if (lines.size() != live_lines_)
    erase_live_lines();
  std::string text = "\r";
  for (std::size_t line = 1; line < live_lines_; ++line)
    text += "\x1b[1A";
  for (std::size_t line = 0; line < lines.size(); ++line)
    text += (line == 0 ? "" : "\n") + lines[line] + "\x1b[K";
  terminal_.write(text);
  live_lines_ = lines.size();
}

LiveState ProgressView::look() {
  LiveState state;
  state.trainings = training_count_;
  for (const Training& training : trainings_) {
    if (training.is_done)
      ++state.finished;
    if (training.is_done || training.steps.step == 0)
      continue;
    LiveTraining live{training.id.path(), training.steps, {}, {}};
    if (training.last) {
      live.loss = training.last->val_loss.value_or(training.last->train_loss);
      if (!training.last->metrics.empty())
        live.metric = training.last->metrics.front();
    }
    state.running.push_back(std::move(live));
  }
  const bool is_searching =
      search_ && std::any_of(trainings_.begin(), trainings_.end(), [](const Training& training) {
        return !training.is_done && is_of_trial(training.id);
      });
  if (is_searching) {
    state.search = search_;
    measure_search(state);
  } else {
    measure(state);
  }
  return state;
}

/// The trials to come take as long as those before, as far as the time budget allows.
void ProgressView::measure_search(LiveState& state) const {
  const SearchProgress& search = search_->progress;
  const double passed = search.seconds + seconds_between(search_told_, Clock::now());
  // Most paused ones stay so.
  const auto ended =
      static_cast<double>(search.complete + search.pruned + search.failed + search.paused);
  if (ended > 0)
    state.seconds_left =
        std::max(passed / ended * (static_cast<double>(search.trials) - ended), 0.0);
  if (search.budget) {
    const double left = std::max(*search.budget - passed, 0.0);
    state.seconds_left = std::min(state.seconds_left.value_or(left), left);
  }
}

/// Rate and time left from the steps of the last seconds: they hold also for a resumed run, and
/// when folds run at once.
void ProgressView::measure(LiveState& state) {
  std::int64_t done = 0;
  std::int64_t planned = 0;
  std::int64_t largest = 0;
  bool has_end = true;
  // One that has not begun is likely to be as long as the others.
  auto not_begun = state.trainings - static_cast<std::int64_t>(trainings_.size());
  for (Training& training : trainings_) {
    const StepProgress& progress = training.steps;
    if (progress.step > 0 && training.steps_at_start < 0)
      training.steps_at_start = progress.step;
    done += progress.step - std::max<std::int64_t>(training.steps_at_start, 0);
    if (!training.is_done && progress.step > 0 && !progress.total_steps)
      has_end = false;
    if (!training.is_done)
      planned += progress.total_steps.value_or(progress.step) - progress.step;
    if (!training.is_done && progress.step == 0)
      ++not_begun;
    largest = std::max(largest, progress.total_steps.value_or(0));
  }
  planned += not_begun * largest;
  const Clock::time_point now = Clock::now();
  samples_.push_back({now, done});
  while (samples_.size() > 2 && now - samples_.front().when > kLeftWindow)
    samples_.pop_front();

  const auto rate_since = [&](Clock::duration window) -> std::optional<double> {
    const auto first = std::find_if(samples_.begin(), samples_.end(), [&](const Sample& sample) {
      return now - sample.when <= window;
    });
    if (first == samples_.end() || now - first->when < 2 * kBetweenPaints || done == first->steps)
      return std::nullopt;
    return static_cast<double>(done - first->steps) / seconds_between(first->when, now);
  };
  state.steps_per_second = rate_since(kRateWindow);
  if (const std::optional<double> rate = rate_since(kLeftWindow); rate && has_end)
    state.seconds_left = static_cast<double>(planned) / *rate;
}

}  // namespace treadle::cli
