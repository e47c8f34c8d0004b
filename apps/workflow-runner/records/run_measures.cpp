#include "records/run_measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <treadle/base/error.h>
#include <treadle/host/record/history_file.h>

#include "records/json_member.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

/// The numbers of the validation rows after an epoch.
struct ValidatedEpoch {
  double updates = 0;
  double seconds = 0;                    // of the training so far
  std::map<std::string, double> values;  // "loss", and metrics by their names
};

/// The epochs of every fit that had validation rows, by its path; epochs that were not validated
/// are left out.
std::map<std::string, std::vector<ValidatedEpoch>> validated_epochs(
    const std::filesystem::path& folder) {
  std::map<std::string, std::vector<ValidatedEpoch>> epochs;
  std::map<std::string, double> seconds;
  for (const HistoryRow& row :
       HistoryFile::read(folder / "history.csv", HistoryFile::Damage::kIsPassedOver)) {
    const EpochSummary& epoch = row.epoch;
    seconds[row.fit] += epoch.seconds;
    if (!epoch.val_loss || epoch.val_loss->is_undefined())
      continue;
    ValidatedEpoch validated{
        static_cast<double>(epoch.step), seconds[row.fit], {{"loss", epoch.val_loss->value()}}};
    for (const MetricValue& metric : epoch.metrics) {
      if (!metric.value.is_undefined())
        validated.values[metric.name] = metric.value.value();
    }
    epochs[row.fit].push_back(std::move(validated));
  }
  return epochs;
}

using Json = nlohmann::json;

constexpr std::string_view kOnlyFit = "final";
constexpr const char* kLoss = "loss";

std::string text_in(const Json& value, std::string_view key) {
  const Json& found = member(value, key);
  return found.is_string() ? found.get<std::string>() : "";
}

std::int64_t count_in(const Json& value, std::string_view key) {
  const Json& found = member(value, key);
  return found.is_number_integer() ? found.get<std::int64_t>() : 0;
}

std::optional<double> number_in(const Json& value, std::string_view key) {
  const Json& found = member(value, key);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

/// "test", "prequential" or "validation": what judges a fold, as in result.json.
std::string judging_part(const Json& fold) {
  return fold.contains("test")          ? "test"
         : fold.contains("prequential") ? "prequential"
                                        : "validation";
}

void add_values(const Json& part, MeasuredTraining& training) {
  if (const auto loss = number_in(part, kLoss))
    training.values[kLoss] = *loss;
  for (const auto& [name, value] : member(part, "metrics").items()) {
    if (value.is_number())
      training.values[name] = value.get<double>();
  }
}

/// `fit`: a fit's result. Judged by its part of that name.
MeasuredTraining training_of(const Json& fit, const std::string& part, const std::string& path) {
  MeasuredTraining training;
  training.fit = path;
  training.rows = text_in(member(fit, "rows"), part + "_hash");
  training.judging = count_in(member(fit, part), "sample_count");
  training.training = count_in(member(fit, "rows"), "training");
  training.seconds = number_in(fit, "training_time_seconds");
  add_values(member(fit, part), training);
  return training;
}

/// Nothing of a run that has no such rows.
std::vector<MeasuredTraining> trainings_of(const Json& result, JudgedOn on,
                                           const std::vector<ResultNumber>& numbers) {
  const Json& folds = member(result, "fold_results");
  if (on == JudgedOn::kTest && result.contains("test"))
    return {training_of(result, "test", std::string(kOnlyFit))};
  if (on == JudgedOn::kTest && text_in(result, "folds_evaluated_on") != "test")
    return {};
  std::vector<MeasuredTraining> trainings;
  for (const Json& fold : folds) {
    const std::string name = text_in(fold, "name");
    trainings.push_back(
        training_of(fold, judging_part(fold), fold.contains("inner") ? name + "/final" : name));
  }
  if (!trainings.empty())
    return trainings;
  const std::string part = result.contains("prequential") ? "prequential" : "validation";
  trainings.push_back(training_of(result, part, std::string(kOnlyFit)));
  // Where nothing validates, the run is judged by its training loss, say; and some numbers are
  // nobody's metric.
  for (const ResultNumber& number : numbers) {
    if (number.value.is_number())
      trainings.front().values[number.name] = number.value.get<double>();
  }
  return trainings;
}

std::vector<ResultNumber> test_numbers(const Json& result) {
  std::vector<ResultNumber> numbers = result_numbers(result);
  const Json& test = member(result, "test");
  for (ResultNumber& number : numbers)
    number.value =
        number.name == kLoss ? member(test, kLoss) : member(member(test, "metrics"), number.name);
  return numbers;
}

/// Makes the rows of trainings known by their data. Those of a run that did not record their
/// numbers follow from its data, its document and its seed.
void identify_rows(const RunRecord& run, JudgedOn on, MeasuredRun& measured) {
  const Json& environment = member(run.result, "environment");
  measured.data = text_in(environment, "data_hash");
  measured.source = text_in(environment, "source_hash");
  if (measured.data.empty())
    return;
  Json split = Json::array({on == JudgedOn::kTest});
  for (const char* key : {"sequence", "validation", "training"})
    split.push_back(key == std::string_view("training") ? member(member(run.document, key), "use")
                                                        : member(run.document, key));
  // Windows of a prequential training are in the order of the data, whatever the seed.
  if (!member(run.document, "validation").contains("seed") && !run.result.contains("prequential"))
    split.push_back(member(run.document, "seed"));
  for (MeasuredTraining& training : measured.trainings) {
    if (training.rows.empty())
      training.rows = training.fit + " of " + split.dump();
    training.rows = measured.data + " " + training.rows;
    if (training.training == 0) {
      training.training =
          std::max<std::int64_t>(0, count_in(environment, "data_rows") - training.judging);
    }
  }
}

std::optional<std::uint64_t> seed_of(const RunRecord& run) {
  const Json& seed = member(run.document, "seed");
  return seed.is_number_integer() ? std::optional(seed.get<std::uint64_t>()) : std::nullopt;
}

}  // namespace

void join_sources(std::vector<MeasuredRun>& runs) {
  std::map<std::string, std::string> first;  // data by source
  for (MeasuredRun& run : runs) {
    if (run.source.empty() || run.data.empty())
      continue;
    const std::string& data = first.emplace(run.source, run.data).first->second;
    for (MeasuredTraining& training : run.trainings) {
      if (training.rows.starts_with(run.data + " "))
        training.rows = data + training.rows.substr(run.data.size());
    }
    run.data = data;
  }
}

namespace {

double spent(const ValidatedEpoch& epoch, Budget::Unit unit) {
  return unit == Budget::Unit::kUpdates ? epoch.updates : epoch.seconds;
}

std::string best_name(const std::string& name) {
  return "best " + name;
}

/// Measures a training by what its validation rows came to within the budget.
void measure_within(const Budget& budget, const std::vector<ValidatedEpoch>& epochs,
                    const std::vector<ResultNumber>& numbers, MeasuredTraining& training) {
  training.values.clear();
  training.updates.reset();
  training.seconds.reset();
  for (const ValidatedEpoch& epoch : epochs) {
    if (spent(epoch, budget.unit) > budget.amount)
      break;
    training.updates = epoch.updates;
    training.seconds = epoch.seconds;
    for (const ResultNumber& number : numbers) {
      const auto found = epoch.values.find(number.name);
      if (found == epoch.values.end() || !std::isfinite(found->second))
        continue;
      training.values[number.name] = found->second;
      if (number.better.empty())
        continue;
      const auto [best, is_first] = training.values.emplace(best_name(number.name), found->second);
      if (number.better == "higher" ? found->second > best->second : found->second < best->second)
        best->second = found->second;
    }
  }
}

/// Each number followed by its best.
std::vector<ResultNumber> with_best(const std::vector<ResultNumber>& numbers) {
  std::vector<ResultNumber> all;
  for (const ResultNumber& number : numbers) {
    all.push_back({number.name, Json(), number.better});
    if (!number.better.empty())
      all.push_back({best_name(number.name), Json(), number.better});
  }
  return all;
}

/// The mean over the trainings; null unless all of them have a value.
Json mean_over(const std::vector<MeasuredTraining>& trainings, const std::string& name) {
  double sum = 0;
  for (const MeasuredTraining& training : trainings) {
    const auto found = training.values.find(name);
    if (found == training.values.end())
      return {};
    sum += found->second;
  }
  return trainings.empty() ? Json() : Json(sum / static_cast<double>(trainings.size()));
}

}  // namespace

MeasuredRun measure_run(const RunRecord& run, JudgedOn on, const Budget& budget) {
  MeasuredRun measured;
  measured.name = shown_path(run.folder);
  measured.seed = seed_of(run);
  if (!run.result.is_object())
    return measured;
  const bool is_tested = on == JudgedOn::kTest && run.result.contains("test");
  measured.numbers = is_tested ? test_numbers(run.result) : result_numbers(run.result);
  if (const std::optional<ResultNumber> variance = window_variance(run.result))
    measured.numbers.push_back(*variance);
  measured.trainings = trainings_of(run.result, on, measured.numbers);
  if (measured.trainings.empty()) {
    for (ResultNumber& number : measured.numbers)
      number.value = Json();
  }
  identify_rows(run, on, measured);
  const auto epochs = validated_epochs(run.folder);
  for (MeasuredTraining& training : measured.trainings) {
    const auto found = epochs.find(training.fit);
    if (budget.unit != Budget::Unit::kNone) {
      measure_within(budget, found == epochs.end() ? std::vector<ValidatedEpoch>() : found->second,
                     measured.numbers, training);
    } else if (found != epochs.end()) {
      training.updates = found->second.back().updates;
    }
  }
  if (budget.unit != Budget::Unit::kNone) {
    measured.numbers = with_best(measured.numbers);
    for (ResultNumber& number : measured.numbers)
      number.value = mean_over(measured.trainings, number.name);
  }
  return measured;
}

bool is_of_one_class(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

Budget shared_budget(const std::vector<RunRecord>& runs, Budget::Unit unit) {
  Budget budget{unit, std::numeric_limits<double>::infinity()};
  for (const RunRecord& run : runs) {
    if (!run.result.is_object())
      continue;
    const auto epochs = validated_epochs(run.folder);
    for (const MeasuredTraining& training : measure_run(run).trainings) {
      const auto found = epochs.find(training.fit);
      if (found == epochs.end()) {
        throw UsageError(shown_path(run.folder) + ": history.csv has no validated epoch of " +
                         training.fit +
                         ", and --at compares what validation rows came to on the way; leave --at "
                         "out");
      }
      budget.amount = std::min(budget.amount, spent(found->second.back(), unit));
    }
  }
  if (!std::isfinite(budget.amount))
    throw UsageError("--at compares finished runs, and none of these is finished");
  return budget;
}

}  // namespace treadle::cli
