#include "ensemble/study_ensemble.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/problem.h>
#include <treadle/host/run/state_folder.h>

#include "components/document_metrics.h"
#include "ensemble/ensemble_selection.h"
#include "ensemble/stacking.h"
#include "store/trial_paths.h"

// A planner around the study: the study plans as it does without an ensemble, and is called first.
// When it plans its first fit that is no trial, all trials have ended; the members are chosen then,
// and made beside the best run.
//
// Bits. Members are chosen from trials in the order of their numbers, and the predictions of the
// folds of a trial are put together in the order of the folds, whatever ended first.

namespace treadle::internal {
namespace {

constexpr const char* kEnsemblePointer = "/search/ensemble";
namespace fs = std::filesystem;

constexpr std::string_view kMembers = "members/";

bool is_member(const FitId& fit) {
  return fit.path().starts_with(kMembers);
}

/// Over positions that count. `weights`: [rows, positions...], or undefined.
std::optional<double> mean_over(const at::Tensor& values, const at::Tensor& weights) {
  if (!values.defined())
    return std::nullopt;
  const at::Tensor exact = values.to(at::kDouble);
  if (!weights.defined())
    return exact.mean().item<double>();
  at::Tensor of_values = weights.to(at::kDouble);
  if (of_values.dim() < exact.dim())
    of_values = of_values.unsqueeze(-1);
  of_values = of_values.expand_as(exact);
  // Positions without weight may hold anything.
  const at::Tensor counted = exact.masked_fill(of_values.le(0), 0) * of_values;
  return (counted.sum() / of_values.sum()).item<double>();
}

EnsembleResult::Uncertainty mean_uncertainty(const Prediction::Uncertainty& of,
                                             const at::Tensor& weights) {
  return {mean_over(of.total, weights), mean_over(of.aleatoric, weights),
          mean_over(of.epistemic, weights)};
}

/// The objective of predictions for some rows, lower is better.
class ObjectiveOfRows {
 public:
  ObjectiveOfRows(const DocumentComponents& components, std::string objective,
                  CollectedPredictions::Rows rows)
      : metrics_(make_metrics(components)),
        objective_(std::move(objective)),
        target_(components.data_spec().targets.front()),
        dtype_(rows.prediction.values.scalar_type()) {
    batch_.rows = rows.rows;
    batch_.original_targets = {rows.targets};
    batch_.targets = batch_.original_targets;
    if (rows.weights.defined())
      batch_.position_weights = {rows.weights};
  }

  /// NaN where no metric of the document gives the objective.
  double operator()(const at::Tensor& predicted) {
    const Prediction prediction{target_.kind, predicted.to(dtype_)};
    for (const Metric& metric : metrics_) {
      metric.computer->reset();
      metric.computer->update(prediction, TargetBatch::original(batch_, 0, target_));
      for (const MetricValue& value : metric.view().compute().values) {
        if (value.name != objective_)
          continue;
        sign_ = value.direction == Direction::kHigherIsBetter ? -1 : 1;
        return sign_ * value.value;
      }
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  /// -1: the objective itself is maximized.
  double sign() const { return sign_; }

 private:
  std::vector<Metric> metrics_;
  std::string objective_;
  double sign_ = 1;
  TargetSpec target_;
  at::ScalarType dtype_;
  Batch batch_;
};

}  // namespace

StudyEnsemble::StudyEnsemble(const RunParts& run, Study& study, EnsembleSettings settings,
                             ValidationPlan plan)
    : run_(run), study_(study), settings_(std::move(settings)), plan_(std::move(plan)) {
  if (run_.components().data_spec().targets.size() != 1)
    fail_in_search(run_.workflow(), kEnsemblePointer,
                   "the data has several targets, and an ensemble is chosen by one");
  if (run_.dataset().is_stream())
    fail_in_search(run_.workflow(), kEnsemblePointer,
                   "the data can only be read in order, and an ensemble reads rows again");
  std::int64_t validated = 0;
  for (const Fold& fold : plan_.folds)
    validated += static_cast<std::int64_t>(fold.validation.size());
  if (settings_.is_stacked && validated < 2) {
    fail_in_search(run_.workflow(), kEnsemblePointer,
                   "stacking is fitted to validation rows, of which there " +
                       std::string(validated == 1 ? "is 1" : "are none") +
                       "; give the validation more rows, or set \"method\" to "
                       "\"mean\"");
  }
  if (!plan_.refit && plan_.folds.size() != 1) {
    fail_in_search(
        run_.workflow(), kEnsemblePointer,
        "this validation leaves no single model, so no members to predict with; set \"refit\" "
        "to true");
  }
}

FitPlanner::Orders StudyEnsemble::next() {
  Orders orders = study_.next();
  const bool has_ended =
      std::any_of(orders.start.begin(), orders.start.end(),
                  [](const PlannedFit& fit) { return !trial_in_path(fit.id.path()); });
  if (has_ended && !std::exchange(is_chosen_, true)) {
    choose();
    for (const Member& member : members_)
      orders.start.push_back(planned(member));
  }
  return orders;
}

bool StudyEnsemble::begins(const FitId& fit) {
  if (!is_member(fit))
    return study_.begins(fit);
  if (!comes_too_late(fit))
    return true;
  leave_out(fit);
  return false;
}

/// From the records of its fits, which were written with predictions behind all other metrics.
StudyEnsemble::Candidate StudyEnsemble::candidate(std::int64_t number) const {
  const std::vector<Metric> metrics = make_report_metrics(run_.components());
  const std::size_t collecting = run_.components().keeps_predictions() ? 1 : 0;  // of one target
  const std::string place = std::to_string(metrics.size() - collecting);
  CollectedPredictions all;
  all.start(run_.components().data_spec().targets.front());
  double epochs = 0;
  const std::vector<std::string> fits = study_.names_of(number);
  for (const std::string& fit : fits) {
    const StateDict record = read_state_folder(run_.folder.fit_result(fit));
    CollectedPredictions predictions;
    predictions.start(run_.components().data_spec().targets.front());
    predictions.load_state(record.part("report_metrics").part(place));
    all.merge(predictions);
    const FitResult result = fit_result_from(record.value("result"), fit);
    epochs += static_cast<double>(result.weights.epoch);
  }
  return {number, all.collected(), std::llround(epochs / static_cast<double>(fits.size()))};
}

void StudyEnsemble::choose() {
  std::vector<Candidate> trials;
  std::vector<at::Tensor> candidates;
  for (const std::int64_t number : study_.candidates()) {
    trials.push_back(candidate(number));
    candidates.push_back(trials.back().predicted.prediction.values);
  }
  if (candidates.empty())
    return;
  ObjectiveOfRows objective(run_.components(), settings_.objective, trials.front().predicted);
  least_loss_alone_ = HUGE_VAL;
  for (const at::Tensor& predicted : candidates)
    least_loss_alone_ = std::min(least_loss_alone_, objective(predicted));
  const auto loss = [&](const at::Tensor& mean) { return objective(mean); };
  SelectedEnsemble selected = select_ensemble(candidates, settings_.size, settings_.initial, loss);
  // Trials that would be members in any case are none where they only do harm.
  if (!(selected.score < least_loss_alone_))
    selected = select_ensemble(candidates, settings_.size, 1, loss);
  if (selected.members.size() == 1)
    return;  // the best run trains it anyway
  for (const EnsembleMember& member : selected.members) {
    const Candidate& trial = trials[member.candidate];
    members_.push_back({trial.number, member.weight, trial.epochs});
  }
  leave_out_slow_ones();
  weigh();
  leave_out_those_without_weight();
}

std::vector<const StudyEnsemble::Member*> StudyEnsemble::usable() const {
  std::vector<const Member*> usable;
  for (const Member& member : members_) {
    if (!member.has_failed)
      usable.push_back(&member);
  }
  return usable;
}

/// Finds how the predictions of the usable members become one.
void StudyEnsemble::weigh() {
  std::vector<const Member*> members = usable();
  predictions_.reset();
  if (members.empty())
    return;
  const TargetKind target = run_.components().data_spec().targets.front().kind;
  std::vector<at::Tensor> predictions;
  CollectedPredictions::Rows rows;
  for (const Member* const member : members) {
    rows = candidate(member->trial).predicted;
    predictions.push_back(rows.prediction.values);
  }
  ObjectiveOfRows objective(run_.components(), settings_.objective, rows);
  std::vector<Prediction> uncertain;
  for (const at::Tensor& values : predictions)
    uncertain.push_back({target, values});
  at::Tensor predicted;
  if (settings_.is_stacked) {
    pool_ = fit_stacking(target, predictions, rows.targets, rows.weights);
    predicted = cross_fitted(target, predictions, rows.targets, rows.weights);
  } else {
    std::vector<double> shares;
    for (const Member* const member : members)
      shares.push_back(member->share);
    const at::Tensor weights = at::tensor(shares, at::kDouble).unsqueeze(1);
    pool_ = {PredictionPool::Kind::kLinear, weights / weights.sum(), {}};
    for (at::Tensor& values : predictions)
      values = values.to(at::kDouble);
    predicted = pool_(target, predictions);
  }
  uncertainty_ = mean_uncertainty(pooled_uncertainty(pool_, uncertain), rows.weights);
  predictions_.emplace();
  predictions_->predictions = {{target, predicted.to(rows.prediction.values.scalar_type())}};
  predictions_->rows.rows = rows.rows;
  predictions_->rows.groups = rows.groups;
  predictions_->rows.targets = predictions_->rows.original_targets = {rows.targets};
  predictions_->rows.position_weights = {rows.weights};
  loss_ = objective(predicted);  // knows the sign from here on
  score_ = objective.sign() * loss_;
}

/// Before they are trained: stacking gives some members no weight.
void StudyEnsemble::leave_out_those_without_weight() {
  std::vector<Member> weighed;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (pool_.weights[static_cast<std::int64_t>(i)].any().item<bool>())
      weighed.push_back(members_[i]);
  }
  if (weighed.size() == members_.size())
    return;
  members_ = std::move(weighed);
  if (members_.size() == 1)
    members_.clear();  // the best run is as good
  weigh();
}

/// Takes out those that add the least for their time, where the time budget is not enough for all.
void StudyEnsemble::leave_out_slow_ones() {
  const std::optional<Study::TimeOfMembers> left = study_.time_of_members();
  if (!left)
    return;
  std::erase_if(members_, [&](const Member& member) {
    return study_.member_seconds(member.trial) > left->wall;
  });
  double needed = 0;
  for (const Member& member : members_)
    needed += study_.member_seconds(member.trial);
  while (needed > left->workers && !members_.empty()) {
    const auto worth = [&](const Member& member) {
      return member.share / std::max(study_.member_seconds(member.trial), 1e-6);
    };
    const auto least =
        std::min_element(members_.begin(), members_.end(),
                         [&](const Member& a, const Member& b) { return worth(a) < worth(b); });
    needed -= study_.member_seconds(least->trial);
    members_.erase(least);
  }
  if (members_.size() == 1)
    members_.clear();  // the best run is as good
}

PlannedFit StudyEnsemble::planned(const Member& member) const {
  const Fold& fold = plan_.refit ? *plan_.refit : plan_.folds.front();
  FitRows rows{fold.training, fold.validation, 0, fold.test};
  if (plan_.refit) {
    rows.validation = {};
    rows.fixed_epochs = std::max<std::int64_t>(1, member.epochs);
  }
  // Behind the group of the trials, whose streams and those of the best run stay as they are.
  const auto models = static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0));
  const FitId group("members", models + 2, models + 3);
  PlannedFit fit{group.child(std::to_string(member.trial), member.trial, member.trial + 1),
                 std::make_shared<const FitRows>(std::move(rows))};
  fit.workflow = study_.document_of(member.trial);
  fit.model_folder = fit.id.path();
  if (!plan_.refit)
    fit.start = WarmStart{study_.names_of(member.trial).front(), WarmStart::From::kModel};
  return fit;
}

FitVerdict StudyEnsemble::reported(const FitId& fit, const EpochSummary& epoch) {
  if (!is_member(fit))
    return study_.reported(fit, epoch);
  return comes_too_late(fit) ? FitVerdict::kStop : FitVerdict::kContinue;
}

/// One that its trial or an earlier process has trained is there.
bool StudyEnsemble::comes_too_late(const FitId& member) const {
  return plan_.refit && study_.is_out_of_time() &&
         !fs::exists(run_.folder.fit_result(member.path()));
}

void StudyEnsemble::paused(const FitId& fit) {
  if (!is_member(fit))
    study_.paused(fit);
}

void StudyEnsemble::stopped(const FitId& fit) {
  is_member(fit) ? leave_out(fit) : study_.stopped(fit);
}

void StudyEnsemble::completed(const FitId& fit, CompletedFit result) {
  if (!is_member(fit))
    return study_.completed(fit, std::move(result));
  if (!result.result.test)
    return;
  for (Member& member : members_) {
    if (!fit.path().ends_with("/" + std::to_string(member.trial)))
      continue;
    if (auto kept = kept_in(result.report_metrics))
      member.tested = {*std::move(kept), std::move(result.fitted_metrics)};
  }
}

bool StudyEnsemble::failed(const FitId& fit, const Error& error) {
  if (!is_member(fit))
    return study_.failed(fit, error);
  leave_out(fit);
  return true;
}

/// The others predict without it, unless the best run alone is as good.
void StudyEnsemble::leave_out(const FitId& fit) {
  for (Member& member : members_)
    member.has_failed =
        member.has_failed || fit.path().ends_with("/" + std::to_string(member.trial));
  weigh();
  if (usable().size() > 1 && loss_ < least_loss_alone_)
    return;
  for (Member& member : members_)
    member.has_failed = true;
}

std::vector<std::string> StudyEnsemble::names() const {
  std::vector<std::string> names;
  for (const Member* const member : usable())
    names.push_back(std::string(kMembers) + std::to_string(member->trial));
  return names;
}

std::optional<TestedEnsemble> StudyEnsemble::tested() const {
  const std::vector<const Member*> members = usable();
  std::vector<at::Tensor> predictions;
  for (const Member* const member : members) {
    if (!member->tested)
      return std::nullopt;
    predictions.push_back(member->tested->predictions.predictions.front().values.to(at::kDouble));
  }
  if (members.empty())
    return std::nullopt;
  TestedEnsemble all = *members.front()->tested;
  Prediction& pooled = all.predictions.predictions.front();
  pooled = {pooled.kind, pool_(pooled.kind, predictions).to(pooled.values.scalar_type())};
  return all;
}

std::optional<EnsembleResult> StudyEnsemble::record() const {
  const std::vector<const Member*> members = usable();
  if (members.empty())
    return std::nullopt;
  EnsembleResult result;
  result.objective = settings_.objective;
  result.validation = score_;
  for (const Member* const member : members)
    result.members.push_back(
        {std::string(kMembers) + std::to_string(member->trial), member->trial, nullptr});
  write_pool(pool_, result);
  result.uncertainty = uncertainty_;
  return result;
}

}  // namespace treadle::internal
