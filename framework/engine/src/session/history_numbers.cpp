#include "session/history_numbers.h"

#include <algorithm>
#include <utility>

#include <treadle/core/history/history.h>
#include <treadle/core/model/abilities/logs_values.h>

namespace treadle::engine {

HistoryNumbers::HistoryNumbers(const SessionParts& parts, const EpochEvaluation& evaluation,
                               const Rates& rates)
    : parts_(parts), evaluation_(evaluation), rates_(rates) {}

const std::vector<std::string>& HistoryNumbers::names() {
  if (!names_.empty())
    return names_;
  const SessionSetup& setup = parts_.setup;
  names_ = {"train_loss", "learning_rate"};
  const auto add = [&](const std::vector<std::string>& more) {
    names_.insert(names_.end(), more.begin(), more.end());
  };
  if (BatchSource* const rows = setup.validation ? setup.validation : setup.example) {
    names_.emplace_back("val_loss");
    add(metric_names(*rows));
  }
  if (const auto* shows = dynamic_cast<const LogsValues*>(setup.model))
    add(shows->logged_names());
  for (const std::string& loss : parts_.needs.losses)
    names_.push_back("loss." + loss);
  if (setup.gradients != nullptr)
    add(setup.gradients->log_names());
  for (const TrainingCallback* callback : setup.callbacks)
    add(callback->log_names());
  add(rates_.log_names());
  if (setup.precision.scales_loss) {
    if (std::find(names_.begin(), names_.end(), kSkippedSteps) == names_.end())
      names_.emplace_back(kSkippedSteps);
    names_.emplace_back(kLossScale);
  }
  return names_;
}

/// Metrics name their values when they have seen something; the last batch is as good as any.
std::vector<std::string> HistoryNumbers::metric_names(BatchSource& rows) {
  first_row_.emplace();
  evaluation_.evaluate(rows, rows.batches_per_epoch().value() - 1, *first_row_);
  std::vector<std::string> names;
  for (const MetricValue& value : first_row_->metrics)
    names.push_back(value.name);
  return names;
}

std::vector<MetricValue> HistoryNumbers::undefined_now() const {
  std::vector<MetricValue> values;
  for (const std::string& name : followed_) {
    std::optional<MetricValue> value = find_value(*first_row_, name);
    if (value && value->value.is_undefined())
      values.push_back(*std::move(value));
  }
  return values;
}

/// A value that is defined for some rows is defined for more, so the last batch is nearly always
/// enough.
void HistoryNumbers::note_undefined() {
  BatchSource* const rows = parts_.setup.validation;
  if (rows == nullptr || !first_row_)
    return;
  if (rows->batches_per_epoch().value() > 1 && !undefined_now().empty())
    evaluation_.evaluate(*rows, 0, first_row_.emplace());
  for (const MetricValue& value : undefined_now()) {
    undefined_.insert(value.name);
    parts_.context.note_once(value.name + ": " + value.value.why(),
                             parts_.context.fit().path() + ": \"" + value.name +
                                 "\" has no value on the validation rows (" + value.value.why() +
                                 "), so nothing is chosen or decided by it");
  }
}

}  // namespace treadle::engine
