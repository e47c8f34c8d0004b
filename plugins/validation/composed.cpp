#include "composed.h"

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>

#include "k_fold.h"
#include "stratified_target.h"

namespace treadle::validation {
namespace {

/// The splitter under `key`; absent: k_fold.
std::unique_ptr<CrossValidator> splitter_in(const Config& config, const char* key,
                                            const ComponentContext& context) {
  if (std::unique_ptr<CrossValidator> splitter = make_nested<CrossValidator>(context, config, key))
    return splitter;
  return std::make_unique<KFold>(Config());
}

bool has_test_rows(const ValidationPlan& plan) {
  return plan.refit && !plan.refit->test.empty();
}

}  // namespace

Repeated::Repeated(const Config& config, const ComponentContext& context)
    : repeats_(config.get_or("repeats", std::int64_t{10})),
      splitter_(splitter_in(config, "splitter", context)),
      test_(config, std::nullopt),
      seed_(config) {}

Repeated::~Repeated() = default;

ValidationPlan Repeated::do_plan(const SplitRequest& request) const {
  const SplitRequest seeded = seed_.in(request);
  SetAside any;
  if (const std::optional<std::size_t> target = stratified_target(seeded, std::nullopt)) {
    any.by = SetAside::By::kClass;
    any.target = *target;
  }
  return test_.plan(seeded, any, [&](const SplitRequest& rest) { return folds_of(rest); });
}

ValidationPlan Repeated::folds_of(const SplitRequest& request) const {
  ValidationPlan plan;
  for (std::int64_t i = 0; i < repeats_; ++i) {
    SplitRequest again = request;
    again.random = request.random.part("repeated", static_cast<std::uint64_t>(i));
    ValidationPlan once = splitter_->plan(again);
    if (has_test_rows(once)) {
      throw DataError(
          "each repetition would set other rows aside for the test; state \"test_fraction\" beside "
          "\"repeats\" instead of in \"splitter\"");
    }
    const std::size_t before = plan.folds.size();
    for (Fold& fold : once.folds) {
      fold.name = "repeat-" + std::to_string(i + 1) + "-" + fold.name;
      if (fold.starts_from)
        *fold.starts_from += before;
      plan.folds.push_back(std::move(fold));
    }
    if (i == 0)
      plan.refit = std::move(once.refit);
  }
  return plan;
}

Nested::Nested(const Config& config, const ComponentContext& context)
    : outer_(splitter_in(config, "outer", context)),
      inner_(splitter_in(config, "inner", context)),
      seed_(config) {}

Nested::~Nested() = default;

ValidationPlan Nested::do_plan(const SplitRequest& request) const {
  const SplitRequest seeded = seed_.in(request);
  ValidationPlan plan = outer_->plan(seeded);
  for (std::size_t i = 0; i < plan.folds.size(); ++i) {
    Fold& fold = plan.folds[i];
    fold.name = "outer-" + std::to_string(i + 1);
    // What validates is chosen by the inner folds.
    if (fold.test.empty()) {
      fold.test = std::move(fold.validation);
    } else {
      fold.training = rows_of_both(fold.training, fold.validation);
    }
    fold.validation = {};
    SplitRequest rest = seeded.part(fold.training);
    rest.random = seeded.random.part("nested", i);
    ValidationPlan inner;
    try {
      inner = inner_->plan(rest);
    } catch (const DataError& error) {
      throw DataError("the inner folds of " + fold.name + ": " + error.what());
    }
    const bool are_plain = std::all_of(inner.folds.begin(), inner.folds.end(), [](const Fold& one) {
      return one.test.empty() && one.inner.empty() && !one.starts_from;
    });
    if (!are_plain || has_test_rows(inner)) {
      throw DataError(
          "the inner folds of a nested validation have training and validation rows only; leave "
          "test rows and warm starts to \"outer\"");
    }
    renumber(inner, fold.training);
    fold.inner = std::move(inner.folds);
  }
  return plan;
}

}  // namespace treadle::validation
