#include "time_series.h"

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/validation/leaks.h>

namespace treadle::validation {
namespace {

/// "83 time steps".
std::string steps_in_words(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " time step" : " time steps");
}

}  // namespace

PastRows::PastRows(const Config& config)
    : gap_(config.get_or("gap", std::int64_t{0})),
      most_(config.find<std::int64_t>("max_train_size")),
      validation_(find_size(config, "validation_size")) {}

Fold PastRows::fold(const TimeSteps& steps, std::int64_t begin, std::int64_t end) const {
  Fold fold;
  std::int64_t last = begin - gap_;
  RowList judged = steps.beginning_in(begin, end);
  if (validation_) {
    const std::int64_t size = validation_->of(last);
    fold.validation = steps.beginning_in(last - size, last);
    fold.test = std::move(judged);
    last -= size + gap_;
  } else {
    fold.validation = std::move(judged);
  }
  fold.training = steps.beginning_in(most_ ? std::max<std::int64_t>(last - *most_, 0) : 0, last);
  // Samples may begin further apart than steps.
  for (const RowList* part :
       {&fold.training, &fold.validation, validation_ ? &fold.test : nullptr}) {
    if (part != nullptr && part->empty()) {
      throw DataError("no sample begins in the steps that " +
                      std::string(part == &fold.training ? "train" : "judge") +
                      " the fold of steps " + std::to_string(begin) + " to " +
                      std::to_string(end - 1) +
                      "; sizes are steps of the data: take larger ones, or samples that begin "
                      "closer together");
    }
  }
  return fold;
}

Fold PastRows::refit(const TimeSteps& steps) const {
  const std::int64_t count = steps.count();
  return refit_on(steps.beginning_in(most_ ? std::max<std::int64_t>(count - *most_, 0) : 0, count));
}

std::int64_t PastRows::fewest(const TimeSteps& steps) const {
  if (!validation_)
    return gap_ + 1;
  return 2 * gap_ + 1 + validation_->of(std::max<std::int64_t>(1, steps.count() / 2));
}

TimeSeries::TimeSeries(const Config& config)
    : folds_(config.get_or("folds", std::int64_t{5})),
      test_size_(find_size(config, "test_size")),
      past_(config),
      refit_(config.get_or("refit", true)),
      test_(config, std::nullopt) {
  test_.expect_model(config, refit_);
}

TimeSeries::~TimeSeries() = default;

ValidationPlan TimeSeries::do_plan(const SplitRequest& request) const {
  return purged(request, test_.plan(request, {SetAside::By::kTime},
                                    [&](const SplitRequest& rest) { return folds_of(rest); }));
}

ValidationPlan TimeSeries::folds_of(const SplitRequest& request) const {
  const TimeSteps steps(request, TimeSteps::Axis::kRows);
  const std::int64_t count = steps.count();
  const std::int64_t size = test_size_ ? test_size_->of(count) : count / (folds_ + 1);
  const std::int64_t first = count - folds_ * size;
  if (size < 1 || first < past_.fewest(steps)) {
    throw DataError("\"folds\": " + std::to_string(folds_) + " of " +
                    steps_in_words(std::max<std::int64_t>(size, 1)) + " and " +
                    steps_in_words(past_.fewest(steps)) + " before the first need " +
                    std::to_string(folds_ * std::max<std::int64_t>(size, 1) + past_.fewest(steps)) +
                    ", and there are " + steps_in_words(count) +
                    "; take fewer folds, or a smaller \"test_size\" or \"gap\"");
  }
  ValidationPlan plan;
  for (std::int64_t i = 0; i < folds_; ++i) {
    plan.folds.push_back(past_.fold(steps, first + i * size, first + (i + 1) * size));
    plan.folds.back().name = "fold-" + std::to_string(i + 1);
  }
  if (refit_)
    plan.refit = past_.refit(steps);
  return plan;
}

WalkForward::WalkForward(const Config& config)
    : start_(find_size(config, "start").value_or(Size(0.5))),
      test_size_(find_size(config, "test_size").value_or(Size(0.1))),
      retrain_every_(config.get_or("retrain_every", std::int64_t{1})),
      warm_start_(config.get_or("warm_start", false)),
      past_(config),
      refit_(config.get_or("refit", true)),
      test_(config, std::nullopt) {
  test_.expect_model(config, refit_);
}

WalkForward::~WalkForward() = default;

ValidationPlan WalkForward::do_plan(const SplitRequest& request) const {
  return purged(request, test_.plan(request, {SetAside::By::kTime},
                                    [&](const SplitRequest& rest) { return folds_of(rest); }));
}

ValidationPlan WalkForward::folds_of(const SplitRequest& request) const {
  const TimeSteps steps(request, TimeSteps::Axis::kRows);
  const std::int64_t count = steps.count();
  const std::int64_t first = start_.of(count);
  const std::int64_t block = test_size_.of(count) * retrain_every_;
  if (first < past_.fewest(steps) || first >= count) {
    throw DataError("\"start\": " + start_.text() + " leaves " + steps_in_words(first) +
                    " before the first rows that are judged, expected at least " +
                    std::to_string(past_.fewest(steps)) + " and fewer than the " +
                    steps_in_words(count) + " of the data");
  }
  ValidationPlan plan;
  for (std::int64_t begin = first; begin < count; begin += block) {
    Fold fold = past_.fold(steps, begin, std::min(begin + block, count));
    fold.name = "fold-" + std::to_string(plan.folds.size() + 1);
    if (warm_start_ && !plan.folds.empty())
      fold.starts_from = plan.folds.size() - 1;
    plan.folds.push_back(std::move(fold));
  }
  if (refit_) {
    plan.refit = past_.refit(steps);
    if (warm_start_)
      plan.refit->starts_from = plan.folds.size() - 1;
  }
  return plan;
}

}  // namespace treadle::validation
