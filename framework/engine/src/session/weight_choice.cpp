#include "session/weight_choice.h"

#include <utility>

#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/weights.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/statistics_refresh.h>

namespace treadle::engine {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw DocumentError({Problem{{}, "/training", why}});
}

}  // namespace

void OptimizersAverage::put_in() {
  TREADLE_EXPECTS(!is_in_model(), "the average is in the model already");
  const at::NoGradGuard no_gradients;
  ParameterArena& arena = step_.arena();
  at::Tensor weights = step_.evaluation_weights();
  own_ = arena.parameters().clone();
  for (const at::Tensor& buffer : model_.buffers())
    own_buffers_.push_back(buffer.detach().clone());
  arena.parameters().copy_(weights);
  arena.write_back();
}

void OptimizersAverage::take_out() {
  TREADLE_EXPECTS(is_in_model(), "the average is not in the model");
  const at::NoGradGuard no_gradients;
  step_.arena().parameters().copy_(own_);
  step_.arena().write_back();
  std::vector<at::Tensor> buffers = model_.buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i)
    buffers[i].copy_(own_buffers_[i]);
  own_ = at::Tensor();
  own_buffers_.clear();
}

WeightChoice::WeightChoice(TrainingStep& step, const SessionSetup& setup, RunContext& context)
    : step_(step), setup_(setup), context_(context) {
  if (!step.has_evaluation_weights())
    return;
  optimizers_ = std::make_unique<OptimizersAverage>(step, *setup.model);
  refreshes_ = gathers_statistics(*setup.model);
}

WeightChoice::~WeightChoice() = default;

void WeightChoice::average(const AveragingPlan& plan) {
  if (average_) {
    refuse(
        "a training has one average of its weights, and two are requested; leave one of \"ema\" "
        "and \"swa\" out");
  }
  if (optimizers_) {
    refuse(
        "the optimizer evaluates an average of its own, and a callback requests another; leave "
        "\"ema\" and \"swa\" out, or choose another optimizer");
  }
  average_ = std::make_unique<WeightAverage>(step_.arena(), *setup_.model, plan);
  step_.average_into(*average_);
  refreshes_ = gathers_statistics(*setup_.model);
}

void WeightChoice::end_with_kept(const std::string& chosen_by) {
  if (ends_with_kept_) {
    refuse(
        "two callbacks would choose the weights that the training ends with; give early_stopping "
        "\"restore_best_weights\": false, or leave the other out");
  }
  ends_with_kept_ = true;
  chosen_by_ = chosen_by;
}

void WeightChoice::add_first_weights() {
  if (average_)
    average_->add_after(0);
}

/// Reads how many weights are in it.
bool WeightChoice::has_average() const {
  if (optimizers_)
    return true;
  if (!average_ || !average_->has_begun())
    return false;
  const Waiting waiting(setup_.timeline, device(), 1);
  return average_->count() > 0;
}

std::unique_ptr<AverageInModel> WeightChoice::put_in() {
  return optimizers_ ? std::make_unique<AverageInModel>(*optimizers_)
                     : std::make_unique<AverageInModel>(*average_);
}

bool WeightChoice::is_average_in_model() const {
  return optimizers_ ? optimizers_->is_in_model() : average_ && average_->is_in_model();
}

std::unique_ptr<AverageInModel> WeightChoice::average_in_model(std::int64_t epoch) {
  if (!has_average())
    return nullptr;
  auto averaged = put_in();
  refresh_statistics(epoch);
  return averaged;
}

std::unique_ptr<AverageInModel> WeightChoice::average_in_model() {
  if (refreshes_ || !has_average())
    return nullptr;
  return put_in();
}

void WeightChoice::refresh_statistics(std::int64_t epoch) {
  if (!refreshes_)
    return;
  const auto stream = setup_.training->epoch(epoch);
  const std::uint64_t seed = context_.random().seed("refresh", {static_cast<std::uint64_t>(epoch)});
  engine::refresh_statistics(*setup_.model, setup_.objective->outputs().size(), *stream, seed,
                             context_.stop_token(), setup_.precision);
}

void WeightChoice::keep() {
  TREADLE_EXPECTS(ends_with_kept_, "keep_weights() needs end_with_kept_weights() in begin()");
  const StateDict weights = module_state(*setup_.model);
  const Waiting waiting(setup_.timeline, device());
  count_fetched(weights, setup_.timeline);
  kept_ = weights.snapshot();
  kept_is_average_ = is_average_in_model();
  keeps_epoch_ = true;
}

bool WeightChoice::is_best(const EpochSummary& epoch) {
  last_loss_ = epoch.val_loss.value_or(epoch.train_loss);
  const bool is_evaluated = epoch.val_loss || setup_.validation == nullptr;
  const bool by_loss =
      is_evaluated && last_loss_.is_known() && (best_epoch_ == 0 || last_loss_ < best_loss_);
  const bool kept = std::exchange(keeps_epoch_, false);
  const bool best = ends_with_kept() ? kept : by_loss;
  if (best) {
    best_loss_ = last_loss_;
    best_epoch_ = epoch.epoch;
  }
  return best;
}

void WeightChoice::choose(std::int64_t epochs_done, bool undefined) {
  if (ends_with_kept_ && kept_.empty() && !undefined) {
    context_.note(context_.fit().path() + ": \"" + chosen_by_ +
                  "\" had no finite value in any epoch, so no epoch is the best; the training "
                  "ends with its last weights");
  }
  if (ends_with_kept()) {
    count_sent(kept_, device(), setup_.timeline);
    load_module_state(*setup_.model, kept_);
  } else if (has_average()) {
    optimizers_ ? optimizers_->put_in() : average_->put_in();
    refresh_statistics(epochs_done - 1);
  } else if (average_) {
    context_.note(
        "the training ended before the averaging of its weights began; it ends with the last "
        "weights");
  }
}

void WeightChoice::describe(TrainingResult& result) const {
  result.final_loss = last_loss_;
  result.best_loss =
      best_epoch_ > 0 ? best_loss_ : Number::undefined("no epoch was evaluated to a finite loss");
  result.best_epoch = best_epoch_;
  result.selects_best = ends_with_kept();
  if (result.selects_best)
    result.chosen_by = chosen_by_;
  result.has_average = result.selects_best ? kept_is_average_ : has_average();
}

void WeightChoice::save_in(StateDict& state) const {
  state.put_number("last_loss", last_loss_);
  state.put_number("best_loss", best_loss_);
  state.put("best_epoch", nlohmann::json(best_epoch_));
  if (!kept_.empty())
    state.put("kept_model", kept_);
  state.put("kept_is_average", nlohmann::json(kept_is_average_));
  if (average_) {
    const Waiting waiting(setup_.timeline, device(), average_->has_begun() ? 1 : 0);
    state.put("average", average_->state());
  }
}

void WeightChoice::load_from(const StateDict& state) {
  last_loss_ = state.number("last_loss");
  best_loss_ = state.number("best_loss");
  best_epoch_ = state.value("best_epoch").get<std::int64_t>();
  if (state.has_part("kept_model"))
    kept_ = state.part("kept_model");
  kept_is_average_ = state.value("kept_is_average").get<bool>();
  if (average_)
    average_->load_state(state.part("average"));
}

}  // namespace treadle::engine
