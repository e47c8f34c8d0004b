#include "result/plan_record.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/core/validation/time_steps.h>

namespace treadle::internal {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostFolds = 60;
constexpr std::size_t kMostStretches = 12;  // of a part; more is no split by time

/// Which steps have a row, one mark each.
std::vector<bool> covered_by(const TimeSteps& steps, const RowList& rows) {
  std::vector<bool> covered(static_cast<std::size_t>(steps.count()), false);
  rows.for_each_range([&](const RowRange& range) {
    const std::int64_t first = steps.first(range.begin);
    const std::int64_t last = steps.first(range.end - 1);
    if (steps.are_in_order() && last - first + 1 == range.size()) {  // a row for each step
      std::fill(covered.begin() + first, covered.begin() + last + 1, true);
      return;
    }
    for (std::int64_t row = range.begin; row < range.end; ++row)
      covered[static_cast<std::size_t>(steps.first(row))] = true;
  });
  return covered;
}

/// How far apart most of them are: samples may begin further apart than steps, and only some of
/// them may be evaluated.
std::size_t usual_distance(const std::vector<std::size_t>& places) {
  std::vector<std::size_t> distances;
  for (std::size_t i = 1; i < places.size(); ++i)
    distances.push_back(places[i] - places[i - 1]);
  if (distances.empty())
    return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

/// Nothing where there are too many.
std::optional<Json> stretches_of(const TimeSteps& steps, const RowList& rows) {
  const std::vector<bool> covered = covered_by(steps, rows);
  std::vector<std::size_t> places;
  for (std::size_t step = 0; step < covered.size(); ++step) {
    if (covered[step])
      places.push_back(step);
  }
  const std::size_t usual = usual_distance(places);
  Json stretches = Json::array();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i == 0 || places[i] - places[i - 1] > usual)
      stretches.push_back({places[i], places[i]});
    stretches.back()[1] = places[i] + 1;
    if (stretches.size() > kMostStretches)
      return std::nullopt;
  }
  return stretches;
}

/// Nothing where a part is scattered.
std::optional<Json> fold_record(const TimeSteps& steps, const Fold& fold) {
  Json record{{"name", fold.name}};
  const std::pair<const char*, const RowList*> parts[] = {
      {"training", &fold.training}, {"validation", &fold.validation}, {"test", &fold.test}};
  for (const auto& [part, rows] : parts) {
    std::optional<Json> stretches = stretches_of(steps, *rows);
    if (!stretches)
      return std::nullopt;
    if (!stretches->empty())
      record[part] = std::move(*stretches);
  }
  return record;
}

/// What a person calls the step: its time, or the number of its row.
std::string name_of_step(const SplitRequest& request, const TimeSteps& steps, std::int64_t step) {
  const std::int64_t row = steps.beginning_in(step, step + 1).front();
  const std::int64_t source = request.source_rows(row).targets.begin;
  const std::string time = request.data != nullptr ? request.data->describe_time(source) : "";
  return time.empty() ? "row " + std::to_string(source) : time;
}

/// Whether rows are scattered, which is cheap to see where their order is that of time.
bool is_scattered(const SplitRequest& request, const RowList& rows) {
  if (request.timestamps.defined())
    return false;  // unknown
  std::size_t stretches = 0;
  rows.for_each_range([&](const RowRange&) { ++stretches; });
  return stretches > kMostStretches;
}

}  // namespace

Json plan_record(const SplitRequest& request, const ValidationPlan& plan) {
  const Fold& first = plan.folds.front();
  if (plan.folds.size() < 2 || plan.folds.size() > kMostFolds ||
      is_scattered(request, first.validation) || is_scattered(request, first.test))
    return {};
  std::optional<TimeSteps> steps;
  try {
    steps.emplace(request, TimeSteps::Axis::kRows);
  } catch (const DataError&) {
    return {};  // several series without times
  }
  Json folds = Json::array();
  for (const Fold& fold : plan.folds) {
    std::optional<Json> record = fold_record(*steps, fold);
    if (!record)
      return {};
    folds.push_back(std::move(*record));
  }
  Json record{{"steps", steps->count()},
              {"first", name_of_step(request, *steps, 0)},
              {"last", name_of_step(request, *steps, steps->count() - 1)},
              {"folds", std::move(folds)}};
  if (plan.refit) {
    if (std::optional<Json> refit = fold_record(*steps, *plan.refit))
      record["folds"].push_back(std::move(*refit));
  }
  return record;
}

}  // namespace treadle::internal
