#include "prequential.h"

#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/data/group_names.h>

namespace treadle {
namespace {

std::string task_of_group(std::int64_t group, const GroupNames* names) {
  return names != nullptr ? names->name_of(group) : "group " + std::to_string(group);
}

AdaptationTracker tracker_of(const Config& config) {
  std::vector<TaskChange> changes;
  const std::vector<Config> given =
      config.has("changes") ? config.children("changes") : std::vector<Config>();
  for (const Config& change : given) {
    changes.push_back({change.get<std::int64_t>("row"),
                       change.get_or("name", "task " + std::to_string(changes.size() + 2))});
    if (changes.size() > 1 && changes[changes.size() - 2].row >= changes.back().row)
      change.fail("row", "must be behind the change before it, at row " +
                             std::to_string(changes[changes.size() - 2].row));
  }
  return AdaptationTracker(config.get_or<std::string>("first_task", "task 1"), std::move(changes));
}

}  // namespace

PrequentialTraining::PrequentialTraining(const Config& config)
    : config_(config),
      window_rows_(config.get_or("window", std::int64_t{1024})),
      by_groups_(config.has("changes") && config.json().at("changes").is_string()) {
  if (!by_groups_)
    tracker_ = tracker_of(config);
}

void PrequentialTraining::do_train(TrainingSession& session) {
  while (session.next_epoch()) {
    while (const std::optional<Batch> batch = session.next_batch()) {
      session.evaluate(*batch);
      count(*batch, session.group_names());
      session.update(*batch, {.learning_rate = session.scheduled_rate()});
    }
    if (tracker_ && tracker_->open_rows() > 0) {
      end_window(session.finish_epoch());
    } else {
      session.stop("the data has ended");  // with a full window
    }
  }
}

LoopNeeds PrequentialTraining::do_needs() const {
  LoopNeeds needs;
  needs.rows_per_epoch = window_rows_;
  return needs;
}

void PrequentialTraining::count(const Batch& batch, const GroupNames* names) {
  if (by_groups_ && !batch.groups.defined()) {
    config_.fail("changes",
                 "the data has no groups; name its column of groups in \"data\", or list the "
                 "changes");
  }
  const at::Tensor groups = by_groups_ ? batch.groups.contiguous() : at::Tensor();
  for (std::int64_t i = 0; by_groups_ && i < groups.numel(); ++i) {
    const std::int64_t group = groups.data_ptr<std::int64_t>()[i];
    if (group_ == group)
      continue;
    group_ = group;
    if (!tracker_) {
      tracker_.emplace(task_of_group(group, names), std::vector<TaskChange>());
    } else {
      tracker_->add_change({tracker_->rows() + i, task_of_group(group, names)});
    }
  }
  tracker_->count(batch.size());
}

void PrequentialTraining::end_window(const EpochSummary& row) {
  std::vector<MetricValue> values{{"loss", row.val_loss.value(), Direction::kLowerIsBetter}};
  values.insert(values.end(), row.metrics.begin(), row.metrics.end());
  tracker_->end_window(std::move(values));
  const std::string wanted = rule().metric;
  const std::vector<MetricValue>& known = tracker_->windows().back().values;
  if (find_number(known, wanted) == nullptr) {
    std::string names;
    for (const MetricValue& one : known)
      names += (names.empty() ? "" : ", ") + one.name;
    config_.child("recovery")
        .fail("metric", "no metric is called \"" + wanted + "\"; there are " + names);
  }
}

RecoveryRule PrequentialTraining::rule() const {
  RecoveryRule rule;
  if (config_.has("recovery")) {
    const Config recovery = config_.child("recovery");
    rule.metric = recovery.get_or<std::string>("metric", "");
    rule.threshold = recovery.find<double>("threshold");
    rule.share = recovery.find<double>("share");
  }
  if (rule.metric.empty()) {
    const bool has_metrics =
        tracker_ && !tracker_->windows().empty() && tracker_->windows().back().values.size() > 1;
    rule.metric = has_metrics ? tracker_->windows().back().values[1].name : "loss";
  }
  return rule;
}

AdaptationRecord PrequentialTraining::adaptation() const {
  AdaptationRecord record{window_rows_, rule(), {}, {}};
  if (tracker_) {
    record.windows = tracker_->windows();
    record.summary = summarize(record.windows, tracker_->changes(), record.recovery);
  }
  return record;
}

StateDict PrequentialTraining::do_state() const {
  StateDict state;
  if (tracker_)
    state.put("tracker", tracker_->state());
  if (group_)
    state.put("group", nlohmann::json(*group_));
  return state;
}

void PrequentialTraining::do_load_state(const StateDict& state) {
  if (!state.has_part("tracker"))
    return;
  if (!tracker_)
    tracker_.emplace("", std::vector<TaskChange>());
  tracker_->load_state(state.part("tracker"));
  if (state.has_value("group"))
    group_ = state.value("group").get<std::int64_t>();
}

void* PrequentialTraining::do_ask(std::string_view interface_id) {
  return interface_id == RecordsAdaptation::kInterface ? static_cast<RecordsAdaptation*>(this)
                                                       : nullptr;
}

}  // namespace treadle
