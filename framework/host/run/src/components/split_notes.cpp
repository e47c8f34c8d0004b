#include "components/split_notes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <unordered_set>

#include <ATen/core/Tensor.h>

#include <treadle/base/json_words.h>
#include <treadle/core/data/abilities/data_notes.h>
#include <treadle/core/data/group_names.h>
#include <treadle/core/validation/set_aside.h>
#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "data/series_times.h"

namespace treadle::internal {
namespace {

/// What a splitter's schema says: it splits at random where its parameters have these values.
constexpr const char* kAtRandom = "x-treadle-random-with";

bool splits_at_random(const Runtime& runtime, const nlohmann::json& validation) {
  const std::string name = validation.at("use");
  const nlohmann::json schema = runtime.registry().describe<CrossValidator>(name).schema;
  const auto with = schema.find(kAtRandom);
  return with != schema.end() &&
         std::all_of(with->items().begin(), with->items().end(), [&](const auto& parameter) {
           return validation.value(parameter.key(), nlohmann::json()) == parameter.value();
         });
}

std::string name_of(std::int64_t group, const GroupNames* names) {
  return names != nullptr ? names->name_of(group) : std::to_string(group);
}

RowList judged_by(const Fold& fold) {
  return rows_of_both(fold.validation, fold.test);
}

/// A group with training rows and others; nothing where there is none.
std::optional<std::int64_t> divided_group(const at::Tensor& groups, const Fold& fold) {
  const at::Tensor numbers = groups.contiguous();
  const auto* const group = numbers.data_ptr<std::int64_t>();
  std::unordered_set<std::int64_t> trained;
  for (const std::int64_t row : fold.training)
    trained.insert(group[row]);
  for (const std::int64_t row : judged_by(fold)) {
    if (trained.count(group[row]) > 0)
      return group[row];
  }
  return std::nullopt;
}

/// Metrics of a handful of rows are steps of a tenth and more; where there are few rows at all,
/// nobody can help it.
std::optional<std::string> note_on_few_rows(const ValidationPlan& plan, std::int64_t rows) {
  constexpr std::int64_t kFew = 10;
  constexpr std::int64_t kEnough = 50;
  std::int64_t validated = 0;
  for (const Fold& fold : plan.folds)
    validated += fold.validation.size();
  if (validated == 0 || validated >= kFew || rows < kEnough)
    return std::nullopt;
  return "validation: only " + std::to_string(validated) + " of " + std::to_string(rows) +
         " rows validate, by which metrics differ at random; a \"fraction\" of 0.1 to 0.3 is "
         "usual, or {\"use\": \"k_fold\"}";
}

bool trains_on_later_rows(const at::Tensor& timestamps, const Fold& fold) {
  const at::Tensor times = timestamps.to(at::kDouble).contiguous();
  const auto* const time = times.data_ptr<double>();
  double latest = -std::numeric_limits<double>::infinity();
  for (const std::int64_t row : fold.training)
    latest = std::max(latest, time[row]);
  const RowList judged = judged_by(fold);
  return std::any_of(judged.begin(), judged.end(),
                     [&](std::int64_t row) { return time[row] < latest; });
}

}  // namespace

std::vector<std::string> notes_on_data(const DocumentComponents& components) {
  std::vector<std::string> all;
  if (const auto* const notes = components.dataset().provider().ask<DataNotes>()) {
    for (const std::string& note : notes->notes())
      all.push_back("data: " + note);
  }
  return all;
}

std::vector<std::string> notes_on_split(const Runtime& runtime,
                                        const DocumentComponents& components) {
  const nlohmann::json& resolved = components.workflow().resolved;
  if (components.dataset().is_stream() || !resolved.contains("validation"))
    return {};
  const SplitRequest request = components.split_request();
  std::vector<std::string> notes;
  if (auto note = note_on_few_rows(components.plan(), request.rows))
    notes.push_back(*std::move(note));
  if (!splits_at_random(runtime, resolved.at("validation")))
    return notes;
  const Fold& fold = components.plan().folds.front();
  if (request.groups.defined()) {
    if (const auto group = divided_group(request.groups, fold)) {
      notes.push_back("validation: rows of group " +
                      quote_text(name_of(*group, components.dataset().evaluated().names)) +
                      " both train and validate, because the split is at random; to judge by "
                      "groups that were not trained on, set {\"use\": \"group_k_fold\"}");
    }
  }
  if (request.timestamps.defined() && trains_on_later_rows(request.timestamps, fold)) {
    notes.push_back(
        "validation: rows train that are later than rows that validate, because the split is at "
        "random; to judge by later rows, set {\"use\": \"hold_out\", \"strategy\": "
        "\"chronological\"} or {\"use\": \"time_series\"}");
  }
  return notes;
}

std::vector<std::string> notes_on_samples(const DocumentComponents& components) {
  const Dataset& dataset = components.dataset();
  if (dataset.is_stream() || dataset.samples() == nullptr ||
      !dataset.source().timestamps().defined()) {
    return {};
  }
  const RowReader& rows = dataset.source();
  const std::vector<std::int64_t> behind = SeriesTimes(rows).rows_behind_holes();
  // One that lies between two samples matters to none.
  const auto is_within_a_sample = [&](std::int64_t row) {
    const std::vector<SampleRun>& runs = dataset.samples()->runs();
    return runs.empty() || std::any_of(runs.begin(), runs.end(), [&](const SampleRun& run) {
             const std::int64_t first = run.rows.inputs.begin;
             const std::int64_t span = std::max(run.rows.inputs.end, run.rows.targets.end) - first;
             const std::int64_t last = first + (run.count - 1) * run.step;
             const std::int64_t begin = std::max(first, row - span + 1);
             const std::int64_t place =
                 first + (begin - first + run.step - 1) / run.step * run.step;
             return place < row && place <= last;
           });
  };
  std::vector<std::int64_t> within;
  std::copy_if(behind.begin(), behind.end(), std::back_inserter(within), is_within_a_sample);
  if (within.empty())
    return {};
  const std::int64_t row = within.front();
  return {"sequence: samples go on over " + std::to_string(within.size()) +
          (within.size() == 1 ? " hole" : " holes") + " in time, the first between " +
          rows.describe_time(row - 1) + " and " + rows.describe_time(row) +
          ", as if its rows were neighbours; the data {\"use\": \"series\"} fills holes "
          "(\"frequency\", \"fill\")"};
}

}  // namespace treadle::internal
