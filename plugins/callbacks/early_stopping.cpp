#include "early_stopping.h"

namespace treadle::callbacks {

EarlyStopping::EarlyStopping(const Config& config)
    : monitor_(config),
      length_(config.get<Duration>("patience")),
      restores_(config.get<bool>("restore_best_weights")) {
  options_.alpha = config.get<double>("alpha");
  options_.min_delta = config.get<double>("min_delta");
}

void EarlyStopping::do_begin(TrainingControl& control) {
  is_active_ = monitor_.begin(control);
  options_.patience = control.epochs(length_);
  if (is_active_ && restores_)
    control.end_with_kept_weights(monitor_.name());
}

void EarlyStopping::do_after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  if (!is_active_)
    return;
  const std::optional<MetricValue> value = monitor_.value(epoch);
  if (!value) {
    // An epoch that was evaluated and has no value counts for nothing.
    if (epoch.val_loss)
      last_epoch_ = epoch.epoch;
    return;
  }
  if (!patience_) {
    options_.direction = value->direction;
    patience_.emplace(options_);
    if (!saved_patience_.empty())
      patience_->load_state(saved_patience_);
  }
  if (patience_->step(value->value, epoch.epoch - last_epoch_))
    control.stop(patience_->reason() + " (" + monitor_.name() + ")");
  last_epoch_ = epoch.epoch;
  if (best_.offer(*value) && restores_)
    control.keep_weights();
}

StateDict EarlyStopping::do_state() const {
  StateDict state;
  // Until the first epoch's end after a resume, what was saved then is still true.
  const StateDict patience = patience_ ? patience_->state() : saved_patience_;
  if (!patience.empty())
    state.put("patience", patience);
  state.put("last_epoch", nlohmann::json(last_epoch_));
  state.put("best", best_.state());
  return state;
}

void EarlyStopping::do_load_state(const StateDict& state) {
  if (state.has_part("patience"))
    saved_patience_ = state.part("patience");
  last_epoch_ = state.value("last_epoch").get<std::int64_t>();
  best_.load_state(state.part("best"));
}

}  // namespace treadle::callbacks
