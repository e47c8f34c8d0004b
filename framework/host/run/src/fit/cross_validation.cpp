#include "fit/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

// The simplest planner: all fits are known at once, and nothing is decided while they run. It also
// has the default answers of FitPlanner, for planners that never pause.
//
// Numbers matter. The index of a fit gives its random streams and its place in the report, so a
// fold keeps its index whatever else is planned, and the refit comes after all folds. Results have
// places of their own, because fits complete in any order.
//
// A nested fold whose inner folds selected no epoch is trained like a refit: as long as they were,
// on average. So the epochs of an outer "final" are fixed, and the refit's follow from them.

namespace treadle::internal {

namespace {

constexpr std::string_view kBaselines = "baselines";

}  // namespace

FitPlanner::~FitPlanner() = default;
bool FitPlanner::begins(const FitId&) {
  return true;
}
FitVerdict FitPlanner::reported(const FitId&, const EpochSummary&) {
  return FitVerdict::kContinue;
}
void FitPlanner::paused(const FitId&) {}
void FitPlanner::stopped(const FitId&) {}
bool FitPlanner::failed(const FitId&, const Error&) {
  return false;
}

CrossValidation::CrossValidation(ValidationPlan plan, const TrainingPlan& training,
                                 std::vector<Baseline> baselines, std::optional<FitId> group,
                                 std::shared_ptr<const ResolvedWorkflow> workflow,
                                 ModelsOfFolds models)
    : plan_(std::move(plan)),
      group_(std::move(group)),
      workflow_(std::move(workflow)),
      // With a limit of steps the document's epochs are no fixed length: the folds show how many it
      // takes.
      epochs_(training.max_steps ? std::nullopt : training.epochs),
      models_(models),
      folds_(plan_.folds.size()),
      inner_(plan_.folds.size()),
      final_(plan_.refit ? 1 : 0),
      baselines_(std::move(baselines)),
      of_baselines_(baselines_.size()) {
  for (std::vector<CompletedFit>& results : of_baselines_)
    results.resize(plan_.folds.size());
}

bool CrossValidation::is_baseline(const FitId& fit) {
  return fit.path().starts_with(std::string(kBaselines) + "/");
}

FitId CrossValidation::id_of(std::size_t fold) const {
  const auto index = static_cast<std::int64_t>(fold);
  const auto count = static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0));
  if (!group_)
    return {path_of(fold), index, count};
  return is_single() ? *group_ : group_->child(plan_.folds[fold].name, index, count);
}

std::string CrossValidation::path_of(std::size_t fold) const {
  if (group_)
    return id_of(fold).path();
  const std::string& name = plan_.folds[fold].name;
  if (!plan_.folds[fold].inner.empty())
    return name + "/final";
  // A single training is always "final", so its files have the same names as those of a refit.
  return is_single() ? "final" : name;
}

std::vector<std::string> CrossValidation::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan_.folds.size(); ++i) {
    for (const Fold& inner : plan_.folds[i].inner)
      names.push_back(plan_.folds[i].name + "/" + inner.name);
    names.push_back(path_of(i));
  }
  if (plan_.refit)
    names.push_back("final");
  for (std::size_t b = 0; b < baselines_.size(); ++b) {
    for (std::size_t i = 0; i < plan_.folds.size(); ++i)
      names.push_back(baseline_path(b, i));
  }
  return names;
}

PlannedFit CrossValidation::planned(FitId id, const Fold& fold) const {
  PlannedFit fit{std::move(id), std::make_shared<const FitRows>(FitRows{
                                    fold.training, fold.validation, 0, fold.test, fold.outputs})};
  fit.workflow = workflow_;
  if (fold.starts_from)
    fit.start = WarmStart{path_of(*fold.starts_from), WarmStart::From::kWeights};
  return fit;
}

void CrossValidation::keep_model(std::size_t fold, PlannedFit& fit) const {
  if (models_ == ModelsOfFolds::kLeft)
    return;
  fit.model_folder = "folds/" + std::to_string(fold + 1);
  FitRows rows = *fit.rows;
  rows.outputs = plan_.refit ? plan_.refit->test : RowList();
  fit.rows = std::make_shared<const FitRows>(std::move(rows));
}

FitPlanner::Orders CrossValidation::next() {
  Orders orders;
  // Called again whenever a fit has ended; nothing is added.
  if (std::exchange(is_planned_, true))
    return orders;
  for (std::size_t i = 0; i < plan_.folds.size(); ++i)
    plan_.folds[i].inner.empty() ? add_fold(i, orders) : add_inner(i, orders);
  if (plan_.refit)
    add_refit(orders);
  add_baselines(orders);
  std::set<std::string> starts;
  for (const PlannedFit& fit : orders.start) {
    if (fit.start)
      starts.insert(fit.start->fit);
  }
  for (PlannedFit& fit : orders.start)
    fit.keeps_weights = starts.count(fit.id.path()) > 0;
  return orders;
}

void CrossValidation::add_fold(std::size_t index, Orders& orders) {
  PlannedFit fit = planned(id_of(index), plan_.folds[index]);
  fit.is_result = is_single() && !group_;
  fit.is_drawn = !plan_.refit && index == 0 && !group_;
  keep_model(index, fit);
  slots_[fit.id.path()] = {&folds_, index};
  orders.start.push_back(std::move(fit));
}

void CrossValidation::add_inner(std::size_t index, Orders& orders) {
  const Fold& fold = plan_.folds[index];
  const FitId group(fold.name, static_cast<std::int64_t>(index),
                    static_cast<std::int64_t>(plan_.folds.size() + (plan_.refit ? 1 : 0)));
  const auto count = static_cast<std::int64_t>(fold.inner.size());
  inner_[index].resize(fold.inner.size());
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) {
    const Fold& inner = fold.inner[static_cast<std::size_t>(i)];
    orders.start.push_back(planned(group.child(inner.name, i, count + 1), inner));
    names.push_back(orders.start.back().id.path());
    slots_[names.back()] = {&inner_[index], static_cast<std::size_t>(i)};
  }
  PlannedFit fit = planned(group.child("final", count, count + 1), fold);
  fit.depends_on = std::move(names);
  fit.epochs = [this, index] { return epochs_after(inner_[index]); };
  fit.is_result = is_single();
  fit.is_drawn = !plan_.refit && index == 0;
  keep_model(index, fit);
  slots_[fit.id.path()] = {&folds_, index};
  orders.start.push_back(std::move(fit));
}

void CrossValidation::add_refit(Orders& orders) {
  const auto folds = static_cast<std::int64_t>(plan_.folds.size());
  PlannedFit fit = planned({"final", folds, folds + 1}, *plan_.refit);
  for (std::size_t i = 0; i < plan_.folds.size(); ++i)
    fit.depends_on.push_back(path_of(i));
  // Asked for when the refit begins: it depends on all folds, which have completed by then.
  fit.epochs = [this] { return epochs_after(folds_); };
  fit.is_result = true;
  fit.is_drawn = true;
  slots_["final"] = {&final_, 0};
  orders.start.push_back(std::move(fit));
}

std::string CrossValidation::baseline_path(std::size_t baseline, std::size_t fold) const {
  const std::string path = std::string(kBaselines) + "/" + baselines_[baseline].name;
  return is_single() ? path : path + "/" + plan_.folds[fold].name;
}

/// Each begins anew and has no inner folds: how long it is trained is what the document says.
void CrossValidation::add_baselines(Orders& orders) {
  const auto folds = static_cast<std::int64_t>(plan_.folds.size());
  const auto models = folds + (plan_.refit ? 1 : 0);
  const auto count = static_cast<std::int64_t>(baselines_.size());
  const FitId group(std::string(kBaselines), models, models + 1);
  for (std::int64_t b = 0; b < count; ++b) {
    const auto baseline = static_cast<std::size_t>(b);
    const FitId of_one = group.child(baselines_[baseline].name, b, count);
    for (std::int64_t i = 0; i < folds; ++i) {
      const auto fold = static_cast<std::size_t>(i);
      PlannedFit fit = planned(
          is_single() ? of_one : of_one.child(plan_.folds[fold].name, i, folds), plan_.folds[fold]);
      fit.start.reset();
      fit.workflow = baselines_[baseline].workflow;
      fit.baseline = baselines_[baseline].pointer;
      slots_[fit.id.path()] = {&of_baselines_[baseline], fold};
      orders.start.push_back(std::move(fit));
    }
  }
}

void CrossValidation::completed(const FitId& fit, CompletedFit result) {
  const Slot slot = slots_.at(fit.path());
  (*slot.results)[slot.index] = std::move(result);
}

std::int64_t CrossValidation::epochs_after(const std::vector<CompletedFit>& folds) const {
  const auto selects_best = [](const CompletedFit& fold) { return fold.result.weights.are_best; };
  if (epochs_ && std::none_of(folds.begin(), folds.end(), selects_best))
    return *epochs_;
  // The epochs whose weights each fold ended with: a fold that selected none has its last ones,
  // and a best epoch by its loss alone. Integers, so the sum is exact. A model of all rows
  // has no validation rows to stop by.
  double sum = 0;
  for (const CompletedFit& fold : folds)
    sum += static_cast<double>(fold.result.weights.epoch);
  return std::max<std::int64_t>(1, std::llround(sum / static_cast<double>(folds.size())));
}

}  // namespace treadle::internal
