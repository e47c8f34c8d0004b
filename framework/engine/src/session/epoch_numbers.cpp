#include "session/epoch_numbers.h"

#include <string>
#include <utility>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace treadle::engine {

EpochSummary EpochNumbers::row(const std::optional<Number>& train_loss) {
  EpochSummary row;
  row.epoch = parts_.progress.epochs_done() + 1;
  row.epochs = parts_.setup.epochs;
  row.step = parts_.progress.steps_done();
  row.learning_rate = rates_.last();
  row.train_loss = train_loss ? *train_loss : mean_loss();
  row.logged = parts_.step.logged_means();
  if (callbacks_.logs_norm())
    row.logged.push_back({kGradientNorm, parts_.step.mean_gradient_norm(), Direction::kNone});
  const std::vector<std::string> names = rates_.log_names();
  if (!names.empty()) {
    const auto rates = rates_.of_groups(parts_.progress.steps_done() - 1, rates_.last());
    for (std::size_t i = 0; i < names.size(); ++i)
      row.logged.push_back({names[i], rates[i], Direction::kNone});
  }
  if (callbacks_.tolerates_skips() || parts_.setup.precision.scales_loss) {
    std::int64_t skipped = parts_.step.record().skipped;
    for (const std::string& loss : parts_.needs.losses)
      skipped += parts_.step.record(loss).skipped;
    row.logged.push_back({kSkippedSteps, static_cast<double>(skipped), Direction::kLowerIsBetter});
  }
  if (parts_.setup.precision.scales_loss)
    row.logged.push_back({kLossScale, parts_.step.record().loss_scale.scale, Direction::kNone});
  return row;
}

Number EpochNumbers::mean_loss() const {
  const LossTotals& totals = parts_.step.totals();
  if (totals.rows() > 0)
    return totals.value();
  return Number::undefined(parts_.needs.losses.empty() ? "every step was skipped"
                                                       : "the loop trains with losses of its own");
}

void EpochNumbers::note_skipped() {
  for (const std::string& loss : parts_.needs.losses) {
    const std::int64_t skipped = parts_.step.record(loss).skipped;
    if (skipped == 0)
      continue;
    skipped_ += skipped;
    callbacks_.add_decision("skipped " + std::to_string(skipped) +
                            (skipped == 1 ? " update" : " updates") + " of the loss " + loss +
                            " because it or a gradient was not finite");
  }
  const StepRecord& now = parts_.step.record();
  if (now.skipped == 0)
    return;
  std::string steps;
  for (const std::int64_t step : now.skipped_at) {
    steps += " " + std::to_string(step);
    if (skipped_at_.size() < static_cast<std::size_t>(StepRecord::kMostListed))
      skipped_at_.push_back(step);
  }
  if (now.skipped > StepRecord::kMostListed)
    steps += " …";
  skipped_ += now.skipped;
  // Without a comma, which history.csv does not take.
  std::string what = "skipped " + std::to_string(now.skipped) +
                     (now.skipped == 1 ? " step" : " steps") +
                     " because the loss or a gradient was not finite (step" + steps + ")";
  if (parts_.setup.precision.scales_loss)
    what += " and lowered the loss scale to " + c10::str(now.loss_scale.scale);
  callbacks_.add_decision(std::move(what));
}

void EpochNumbers::note_uncaptured() {
  if (has_noted_uncaptured_ || parts_.step.why_not_captured().empty())
    return;
  has_noted_uncaptured_ = true;
  parts_.context.note("steps are not captured: " + parts_.step.why_not_captured());
}

void EpochNumbers::describe(TrainingResult& result) const {
  result.skipped_steps = skipped_;
  result.skipped_at = skipped_at_;
  result.replayed_steps = parts_.step.replayed();
  result.why_not_captured = parts_.step.why_not_captured();
}

void EpochNumbers::save_in(StateDict& state) const {
  state.put("numbers", parts_.step.numbers());
  state.put("skipped_steps", nlohmann::json(skipped_));
  state.put("skipped_at", nlohmann::json(skipped_at_));
}

void EpochNumbers::load_from(const StateDict& state) {
  parts_.step.set_numbers(state.part("numbers"));
  skipped_ = state.value("skipped_steps").get<std::int64_t>();
  skipped_at_ = state.value("skipped_at").get<std::vector<std::int64_t>>();
}

}  // namespace treadle::engine
