#include "session/checkpoints.h"

#include <cmath>
#include <string>
#include <utility>

#include <c10/util/StringUtil.h>

#include <treadle/base/error.h>
#include <treadle/engine/device_traffic.h>

namespace treadle::engine {

Checkpoints::Checkpoints(const SessionParts& parts, const ScheduleSpan& span,
                         std::function<StateDict()> state)
    : parts_(parts), clock_(parts.setup.checkpoint_every, span), state_(std::move(state)) {}

void Checkpoints::after_step() {
  if (!parts_.progress.is_last_of_epoch())
    save_if_due(false);
}

void Checkpoints::expect_uninterrupted() const {
  if (is_interrupted_)
    end();
}

void Checkpoints::save_finished_epoch() {
  expect_uninterrupted();
  if (!std::exchange(has_unsaved_epoch_, false))
    return;
  if (ShardGroup* const group = parts_.setup.group)
    group->agree_on(wishes_behind(parts_.progress.steps_done()));  // the epoch's evaluation, and
                                                                   // its observers, took their time
  save_if_due(true);
}

void Checkpoints::interrupt(bool within_step) {
  if (!within_step && !is_interrupted_)
    save(parts_.progress.batches_done() == 0, false);
  is_interrupted_ = true;
  end();
}

ShardGroup::Signals Checkpoints::wishes_behind(std::int64_t step) const {
  return {parts_.context.stop_token().stop_requested(), clock_.due(step),
          parts_.progress.seconds()};
}

// Processes that train together all do what they have agreed on.
bool Checkpoints::is_stop_requested() const {
  const ShardGroup* const group = parts_.setup.group;
  return group != nullptr ? group->agreed().stop : parts_.context.stop_token().stop_requested();
}

bool Checkpoints::is_due() const {
  const ShardGroup* const group = parts_.setup.group;
  return group != nullptr ? group->agreed().save : clock_.due(parts_.progress.steps_done());
}

void Checkpoints::save_if_due(bool at_epoch_end) {
  const bool stopping = is_stop_requested();
  const bool finished = at_epoch_end && parts_.progress.is_finished();
  if (!stopping && !finished && !is_due())
    return;
  save(at_epoch_end, finished);
  if (stopping && !finished) {
    is_interrupted_ = true;
    end();
  }
}

void Checkpoints::save(bool at_epoch_end, bool finished) {
  expect_no_divergence();
  const std::int64_t steps = parts_.progress.steps_done();
  // A gradient can overflow although the loss did not: a checkpoint must never hold such weights.
  const bool is_finite = [&] {
    const Waiting waiting(parts_.setup.timeline, parts_.step.device(), 1);
    return std::isfinite(parts_.step.arena().parameters().sum().item<double>());
  }();
  if (!is_finite)
    report_divergence(steps);
  parts_.context.save_checkpoint(state_(),
                                 {parts_.progress.epochs_done(), steps, at_epoch_end, finished},
                                 parts_.setup.keep_checkpoints);
  clock_.saved(steps);
  if (ShardGroup* const group = parts_.setup.group) {
    ShardGroup::Signals agreed = group->agreed();
    agreed.save = false;
    group->agree(agreed);
  }
}

void Checkpoints::end() const {
  throw Interrupted("stopped after step " + std::to_string(parts_.progress.steps_done()) +
                    " of epoch " + std::to_string(parts_.progress.epoch_of_last_step()));
}

void Checkpoints::expect_no_divergence() const {
  if (const std::int64_t step = parts_.step.record().diverged_at; step > 0)
    report_divergence(step);
  for (const std::string& loss : parts_.needs.losses) {
    if (parts_.step.record(loss).diverged_at > 0)
      report_divergence(parts_.progress.steps_done());
  }
}

void Checkpoints::report_divergence(std::int64_t step) const {
  const std::string checkpoint = parts_.context.last_checkpoint();
  throw TrainingError(
      "the loss or its gradient became NaN or infinite in epoch " +
      std::to_string(parts_.progress.epoch_of_last_step()) + ", step " + std::to_string(step) +
      " (" + parts_.context.fit().path() + "); " +
      (checkpoint.empty() ? "no checkpoint exists yet"
                          : "the last good checkpoint is " + checkpoint) +
      (parts_.setup.precision.scales_loss
           ? "; the loss was scaled by as little as " +
                 c10::str(parts_.step.record().loss_scale.scale) + ", so it is not float16 alone"
           : std::string()) +
      "; try a lower optimizer.learning_rate, or bound the gradients with training.clip.norm");
}

}  // namespace treadle::engine
