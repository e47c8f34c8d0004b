#include "progress_view.h"

#include <algorithm>
#include <utility>

namespace treadle::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenPaints = 100ms;
// What is shown should be steady to the eye, and still follow what happens.
constexpr auto kRateWindow = 3s;
constexpr auto kLeftWindow = 30s;

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

StepProgress ProgressView::Steps::read() const {
  return {epoch.load(std::memory_order_relaxed), epochs.load(std::memory_order_relaxed),
          step.load(std::memory_order_relaxed), total_steps.load(std::memory_order_relaxed)};
}

ProgressView::ProgressView(Terminal terminal, bool silent)
    : terminal_(std::move(terminal)), silent_(silent) {
  if (!silent_ && terminal_.can_repaint())
    painter_ = std::jthread([this](std::stop_token stop) { keep_painting(std::move(stop)); });
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
  erase_live_line();
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

void ProgressView::do_trial_started(const TrialId& trial) {
  const std::lock_guard lock(mutex_);
  if (trainings_ == nullptr && trial.count > 0) {
    trainings_ = std::make_unique<Training[]>(static_cast<std::size_t>(trial.count));
    training_count_.store(trial.count, std::memory_order_release);
  }
  if (Training* training = find(trial))
    training->id = trial;
}

ProgressView::Training* ProgressView::find(const TrialId& trial) {
  const std::int64_t count = training_count_.load(std::memory_order_acquire);
  return trial.index >= 0 && trial.index < count
             ? &trainings_[static_cast<std::size_t>(trial.index)]
             : nullptr;
}

void ProgressView::do_step_completed(const TrialId& trial, const StepProgress& progress) {
  Training* training = find(trial);
  if (training == nullptr)
    return;
  training->steps.epoch.store(progress.epoch, std::memory_order_relaxed);
  training->steps.epochs.store(progress.epochs, std::memory_order_relaxed);
  training->steps.total_steps.store(progress.total_steps, std::memory_order_relaxed);
  training->steps.step.store(progress.step, std::memory_order_relaxed);
}

void ProgressView::do_epoch_completed(const TrialId& trial, const EpochSummary& summary) {
  const std::lock_guard lock(mutex_);
  Training* training = find(trial);
  if (training == nullptr)
    return;
  training->last = summary;
  training->is_last_shown = false;
  if (has_line(summary.epoch, summary.epochs, trial.count))
    print_epoch(*training, summary);
}

void ProgressView::do_trial_completed(const TrialId& trial, const TrialSummary& summary) {
  const std::lock_guard lock(mutex_);
  if (Training* training = find(trial)) {
    // Early stopping may have ended it at an epoch that had no line.
    if (trial.count == 1 && training->last && !training->is_last_shown)
      print_epoch(*training, *training->last);
    training->is_done = true;
  }
  if (trial.count > 1) {
    print(trial_line(trial, summary));
  } else if (!summary.stop_reason.empty()) {
    print(summary.stop_reason);
  }
}

void ProgressView::do_noted(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print(terminal_.dim("note: ") + text);
}

void ProgressView::print(const std::string& line) {
  if (silent_)
    return;
  erase_live_line();
  terminal_.write(line + "\n");
}

void ProgressView::print_epoch(Training& training, const EpochSummary& summary) {
  if (!table_) {
    table_.emplace(training.id, summary, terminal_.width());
    print(terminal_.dim(cut_to(table_->head(), terminal_.width())));
  }
  const std::string row = cut_to(table_->row(training.id, summary), terminal_.width());
  print(summary.best && summary.val_loss ? terminal_.green(row) : row);
  training.is_last_shown = true;
}

void ProgressView::erase_live_line() {
  if (!has_live_line_)
    return;
  terminal_.write("\r\x1b[K");
  has_live_line_ = false;
}

void ProgressView::keep_painting(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, kBetweenPaints, [] { return false; });
    if (!stop.stop_requested())
      paint();
  }
}

void ProgressView::paint() {
  if (is_finished_)
    return;
  const LiveState state = look();
  if (state.running.empty()) {
    erase_live_line();
    return;
  }
  // The terminal writes ^C behind it, and must not begin another line for that.
  const std::string line = live_line(state, terminal_.width() - 3);
  terminal_.write("\r" + line + "\x1b[K");
  has_live_line_ = true;
}

LiveState ProgressView::look() {
  LiveState state;
  state.trainings = training_count_.load(std::memory_order_acquire);
  for (std::int64_t i = 0; i < state.trainings; ++i) {
    Training& training = trainings_[static_cast<std::size_t>(i)];
    const StepProgress progress = training.steps.read();
    if (training.is_done)
      ++state.finished;
    if (training.is_done || progress.step == 0)
      continue;
    LiveTraining live{training.id.name, progress, {}, {}};
    if (training.last) {
      live.loss = training.last->val_loss.value_or(training.last->train_loss);
      if (!training.last->metrics.empty())
        live.metric = training.last->metrics.front();
    }
    state.running.push_back(std::move(live));
  }
  measure(state);
  return state;
}

/// Rate and time left from the steps of the last seconds: they hold also for a resumed run, and
/// when folds run at once.
void ProgressView::measure(LiveState& state) {
  std::int64_t done = 0;
  std::int64_t planned = 0;
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < state.trainings; ++i) {
    Training& training = trainings_[static_cast<std::size_t>(i)];
    const StepProgress progress = training.steps.read();
    if (progress.step > 0 && training.steps_at_start < 0)
      training.steps_at_start = progress.step;
    done += progress.step - std::max<std::int64_t>(training.steps_at_start, 0);
    if (!training.is_done)
      planned += progress.total_steps - progress.step;
    largest = std::max(largest, progress.total_steps);
  }
  for (std::int64_t i = 0; i < state.trainings; ++i) {
    const Training& training = trainings_[static_cast<std::size_t>(i)];
    // One that has not begun is likely to be as long as the others.
    if (!training.is_done && training.steps.read().total_steps == 0)
      planned += largest;
  }
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
  if (const std::optional<double> rate = rate_since(kLeftWindow))
    state.seconds_left = static_cast<double>(planned) / *rate;
}

}  // namespace treadle::cli
