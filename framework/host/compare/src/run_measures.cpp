#include <treadle/host/compare/run_measures.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <treadle/base/error.h>
#include <treadle/host/record/history_file.h>

#include "json_member.h"

namespace treadle::compare {
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

void add_values(const std::vector<MetricValue>& numbers, MeasuredTraining& training) {
  for (const MetricValue& number : numbers) {
    if (number.value.is_known())
      training.values[number.name] = number.value;
  }
}

std::vector<MetricValue> numbers_of(const Scores& scores) {
  std::vector<MetricValue> numbers{{kLoss, scores.loss, Direction::kLowerIsBetter}};
  numbers.insert(numbers.end(), scores.metrics.begin(), scores.metrics.end());
  return numbers;
}

/// Of the rows `part` of a training: "test", "prequential" or "validation".
MeasuredTraining training_of(const FitResult& fit, std::string_view part, const std::string& path) {
  MeasuredTraining training;
  training.fit = path;
  training.training = fit.rows.training.value_or(0);
  training.seconds = fit.training_time_seconds;
  if (part == "test") {
    training.rows = fit.rows.test_hash;
    training.evaluated_rows = fit.test->sample_count;
    add_values(numbers_of(*fit.test), training);
  } else if (fit.prequential) {
    training.evaluated_rows = fit.prequential->sample_count;
    add_values(numbers_of(*fit.prequential), training);
  } else if (fit.validation) {
    training.rows = fit.rows.validation_hash;
    training.evaluated_rows = fit.validation->sample_count;
    add_values(numbers_of(*fit.validation), training);
  }
  return training;
}

/// Nothing of a run that has no such rows.
std::vector<MeasuredTraining> trainings_of(const RunResult& result, EvaluatedOn on,
                                           const std::vector<MetricValue>& numbers) {
  const std::optional<CrossValidationResult>& folds = result.cross_validation;
  if (on == EvaluatedOn::kTest && result.training.test)
    return {training_of(result.training, "test", std::string(kOnlyFit))};
  if (on == EvaluatedOn::kTest && (!folds || folds->evaluated_on() != "test"))
    return {};
  if (!folds) {
    // Where nothing validates, the run is measured by its training loss; and some numbers are
    // nobody's metric.
    MeasuredTraining only = training_of(result.training, "validation", std::string(kOnlyFit));
    add_values(numbers, only);
    return {std::move(only)};
  }
  std::vector<MeasuredTraining> trainings;
  for (std::size_t i = 0; i < folds->fold_results.size(); ++i) {
    const FitResult& fold = folds->fold_results[i];
    trainings.push_back(training_of(fold, fold.evaluated_on(),
                                    i < folds->inner.size() ? fold.name + "/final" : fold.name));
  }
  return trainings;
}

std::vector<MetricValue> test_numbers(const RunResult& result) {
  std::vector<MetricValue> numbers = result_numbers(result);
  for (MetricValue& number : numbers) {
    const Number* const found = result.training.test->find(number.name);
    number.value = found != nullptr ? *found : Number(NAN);
  }
  return numbers;
}

/// Makes the rows of trainings known by their data. Those of a run that did not record their
/// numbers follow from its data, its document and its seed.
void identify_rows(const RunRecord& run, EvaluatedOn on, MeasuredRun& measured) {
  const Json& environment = run.result->environment;
  measured.data = text_in(environment, "data_hash");
  measured.source = text_in(environment, "source_hash");
  if (measured.data.empty())
    return;
  Json split = Json::array({on == EvaluatedOn::kTest});
  for (const char* key : {"sequence", "validation", "training"})
    split.push_back(key == std::string_view("training") ? member(member(run.document, key), "use")
                                                        : member(run.document, key));
  // Windows of a prequential training are in the order of the data, whatever the seed.
  if (!member(run.document, "validation").contains("seed") && !run.result->training.prequential)
    split.push_back(member(run.document, "seed"));
  for (MeasuredTraining& training : measured.trainings) {
    if (training.rows.empty())
      training.rows = training.fit + " of " + split.dump();
    training.rows = measured.data + " " + training.rows;
    if (training.training == 0) {
      training.training =
          std::max<std::int64_t>(0, count_in(environment, "data_rows") - training.evaluated_rows);
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

/// Measures a training by its results on the validation rows within the budget.
void measure_within(const Budget& budget, const std::vector<ValidatedEpoch>& epochs,
                    const std::vector<MetricValue>& numbers, MeasuredTraining& training) {
  training.values.clear();
  training.updates.reset();
  training.seconds.reset();
  for (const ValidatedEpoch& epoch : epochs) {
    if (spent(epoch, budget.unit) > budget.amount)
      break;
    training.updates = epoch.updates;
    training.seconds = epoch.seconds;
    for (const MetricValue& number : numbers) {
      const auto found = epoch.values.find(number.name);
      if (found == epoch.values.end() || !std::isfinite(found->second))
        continue;
      training.values[number.name] = found->second;
      if (number.direction == Direction::kNone)
        continue;
      const auto [best, is_first] = training.values.emplace(best_name(number.name), found->second);
      if (number.direction == Direction::kHigherIsBetter ? found->second > best->second
                                                         : found->second < best->second)
        best->second = found->second;
    }
  }
}

/// Each number followed by its best.
std::vector<MetricValue> with_best(const std::vector<MetricValue>& numbers) {
  std::vector<MetricValue> all;
  for (const MetricValue& number : numbers) {
    all.push_back({number.name, NAN, number.direction});
    if (number.direction != Direction::kNone)
      all.push_back({best_name(number.name), NAN, number.direction});
  }
  return all;
}

/// The mean over the trainings; NaN unless all of them have a value.
double mean_over(const std::vector<MeasuredTraining>& trainings, const std::string& name) {
  double sum = 0;
  for (const MeasuredTraining& training : trainings) {
    const auto found = training.values.find(name);
    if (found == training.values.end())
      return NAN;
    sum += found->second;
  }
  return trainings.empty() ? NAN : sum / static_cast<double>(trainings.size());
}

}  // namespace

MeasuredRun measure_run(const RunRecord& run, EvaluatedOn on, const Budget& budget) {
  MeasuredRun measured;
  measured.name = run.folder.string();
  measured.seed = seed_of(run);
  if (!run.result)
    return measured;
  const RunResult& result = *run.result;
  const bool is_tested = on == EvaluatedOn::kTest && result.training.test;
  measured.numbers = is_tested ? test_numbers(result) : result_numbers(result);
  if (const std::optional<MetricValue> variance = window_variance(result))
    measured.numbers.push_back(*variance);
  measured.trainings = trainings_of(result, on, measured.numbers);
  if (measured.trainings.empty()) {
    for (MetricValue& number : measured.numbers)
      number.value = NAN;
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
    for (MetricValue& number : measured.numbers)
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
    if (!run.result)
      continue;
    const auto epochs = validated_epochs(run.folder);
    for (const MeasuredTraining& training : measure_run(run).trainings) {
      const auto found = epochs.find(training.fit);
      if (found == epochs.end()) {
        throw UsageError(run.folder.string() + ": history.csv has no validated epoch of " +
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

}  // namespace treadle::compare
