#include "outputs/rows_for_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle::internal {
namespace {

SetAside how_to_set_aside(const SplitRequest& request) {
  if (request.groups.defined() && request.samples == nullptr)
    return {SetAside::By::kGroup};
  if (request.timestamps.defined() || request.samples != nullptr)
    return {SetAside::By::kTime};
  for (std::size_t target = 0; target < request.targets.size(); ++target) {
    if (request.targets[target].kind == TargetKind::kClasses &&
        request.target_values[target].defined())
      return {SetAside::By::kClass, true, target};
  }
  return {};
}

/// Of `rows`, those that touch none of the rows of the data that `aside` predicts.
RowList beside_what_is_predicted(const SplitRequest& request, const RowList& rows,
                                 const RowList& aside) {
  if (request.samples == nullptr)
    return rows;
  std::vector<bool> is_predicted(
      static_cast<std::size_t>(request.data != nullptr ? request.data->rows() : 0), false);
  for (const std::int64_t row : aside) {
    const RowRange predicted = request.source_rows(row).targets;
    std::fill(is_predicted.begin() + predicted.begin, is_predicted.begin() + predicted.end, true);
  }
  const auto touches = [&](const RowRange& range) {
    return std::find(is_predicted.begin() + range.begin, is_predicted.begin() + range.end, true) !=
           is_predicted.begin() + range.end;
  };
  std::vector<std::int64_t> kept;
  for (const std::int64_t row : rows) {
    const SourceRows source = request.source_rows(row);
    if (!touches(source.inputs) && !touches(source.targets))
      kept.push_back(row);
  }
  return RowList(std::move(kept));
}

std::string validation_of(const ResolvedWorkflow& workflow) {
  return workflow.resolved.contains("validation")
             ? workflow.resolved.at("validation").at("use").get<std::string>()
             : "no validation";
}

}  // namespace

void set_rows_aside_for_outputs(const ResolvedWorkflow& workflow, const SplitRequest& request,
                                ValidationPlan& plan) {
  if (!has_outputs(workflow) || plan.folds.size() != 1 || plan.refit ||
      !plan.folds.front().inner.empty())
    return;
  Fold& fold = plan.folds.front();
  const auto rows = static_cast<std::int64_t>(fold.training.size());
  if (rows < 2) {
    throw DataError("outputs learn from training rows that are set aside, and there is " +
                    std::to_string(rows) + " in all; give the data more rows");
  }
  const double fraction = workflow.resolved.at("outputs").value("fraction", 0.2);
  const auto count =
      std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(rows)), 1, rows - 1);
  SplitRequest part = request.part(fold.training);
  part.random = request.random.part("outputs", 0);
  const RowList places = rows_set_aside(part, count, how_to_set_aside(part));
  fold.outputs = fold.training.at(places);
  fold.training =
      beside_what_is_predicted(request, fold.training.at(all_rows_but(rows, places)), fold.outputs);
  if (fold.training.empty()) {
    throw DataError("outputs learn from " + std::to_string(fold.outputs.size()) +
                    " training rows that are set aside, and no others are left; set a smaller "
                    "outputs.fraction, or give the data more rows");
  }
}

void expect_folds_for_outputs(const ResolvedWorkflow& workflow, const OutputStages& stages,
                              const SplitRequest& request, const ValidationPlan& plan) {
  const std::string stage = "output " + quote_text(stages.needs_folds_first());
  const auto refuse = [&](const std::string& expected, const std::string& got) {
    throw DataError(stage + " predicts with the models of all folds: expected " + expected +
                    ", got " + got +
                    "; choose a validation such as {\"use\": \"k_fold\"}, or let the output learn "
                    "without folds (\"method\": \"split\")");
  };
  if (workflow.resolved.contains("search")) {
    throw DataError(
        stage +
        " predicts with the models of all folds, which a search does not keep; leave "
        "\"search\" out and give the values it found (best.json of its run), or let the "
        "output learn without folds (\"method\": \"split\")");
  }
  if (plan.folds.size() < 2)
    refuse("2 folds or more", "1 of " + quote_text(validation_of(workflow)));
  if (!plan.refit) {
    refuse("a model of all rows beside them (\"refit\": true)",
           "folds alone, of " + quote_text(validation_of(workflow)));
  }
  std::vector<int> times(static_cast<std::size_t>(request.rows), 0);
  for (const Fold& fold : plan.folds) {
    for (const std::int64_t row : fold.test.empty() ? fold.validation : fold.test)
      ++times[static_cast<std::size_t>(row)];
  }
  std::int64_t never = 0;
  std::int64_t often = 0;
  for (const std::int64_t row : plan.refit->training) {
    const int count = times[static_cast<std::size_t>(row)];
    never += count == 0 ? 1 : 0;
    often += count > 1 ? 1 : 0;
  }
  if (never > 0 || often > 0) {
    const bool is_never = never > 0;
    refuse("each training row in one fold's validation rows",
           std::to_string(is_never ? never : often) + " of " +
               std::to_string(plan.refit->training.size()) + " rows in " +
               (is_never ? "none" : "several") + ", of " + quote_text(validation_of(workflow)));
  }
}

void expect_rows_for_outputs(const OutputStages& stages, const SplitRequest& request,
                             const ValidationPlan& plan) {
  std::vector<std::int64_t> learned;
  const auto add = [&](const RowList& rows) {
    learned.insert(learned.end(), rows.begin(), rows.end());
  };
  if (plan.folds.size() == 1 && plan.folds.front().inner.empty() && !plan.refit) {
    add(plan.folds.front().outputs);
  } else {
    for (const Fold& fold : plan.folds) {
      for (const Fold& inner : fold.inner)
        add(plan.folds.size() == 1 ? inner.validation : RowList());
      add(fold.test.empty() ? fold.validation : fold.test);
    }
  }
  Batch rows;
  rows.rows = at::tensor(learned, at::kLong);
  for (const at::Tensor& values : request.target_values)
    rows.targets.push_back(values.defined() ? at::index_select(values, 0, rows.rows) : values);
  rows.original_targets = rows.targets;
  stages.expect_enough(rows);
}

}  // namespace treadle::internal
